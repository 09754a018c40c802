//! Programs on this machine that listen and speak.

use std::io;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use talaria_agent::{Recording, Speaker, Transcriber, VoiceError};

use crate::program::run;
use crate::sound::{self, Format};

/// Stands for the path of what a program reads.
const INPUT: &str = "{input}";

/// Stands for the path of what a program writes.
const OUTPUT: &str = "{output}";

/// The longest text that is taken from a program, in bytes.
const LONGEST_WORDS: usize = 1024 * 1024;

/// A program and its arguments. `{input}` and `{output}` in them stand for the paths of files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program(pub Vec<String>);

impl Program {
    fn with(&self, input: &Path, output: &Path) -> Vec<String> {
        let (input, output) = (input.to_string_lossy(), output.to_string_lossy());
        self.0.iter().map(|word| word.replace(INPUT, &input).replace(OUTPUT, &output)).collect()
    }

    fn writes_a_file(&self) -> bool {
        self.0.iter().any(|word| word.contains(OUTPUT))
    }

    /// Runs it and says what it made, by the way in which it says so.
    async fn make(&self, task: Task<'_>) -> Result<Vec<u8>, VoiceError> {
        let Task { folder, input, output, told, largest } = task;
        let printed = run(&self.with(input, output), folder, told, largest).await?;
        if !self.writes_a_file() {
            return Ok(printed);
        }
        let name = self.0.first().map_or("", String::as_str);
        let found = tokio::fs::symlink_metadata(output).await;
        match found {
            Ok(file) if file.is_file() && file.len() <= largest as u64 => {
                tokio::fs::read(output).await.map_err(broken)
            }
            Ok(_) => refused(format!("`{name}` wrote more than {largest} bytes")),
            Err(_) => refused(format!("`{name}` wrote nothing")),
        }
    }
}

/// What a program is to do.
struct Task<'a> {
    folder: &'a Path,
    input: &'a Path,
    output: &'a Path,
    told: &'a [u8],
    largest: usize,
}

fn refused<T>(reason: String) -> Result<T, VoiceError> {
    Err(VoiceError::Refused { reason })
}

fn broken(error: io::Error) -> VoiceError {
    VoiceError::Unavailable { reason: format!("the disk: {error}"), after: None }
}

/// A folder in which programs work, each time in another one that is removed afterwards.
#[derive(Debug, Clone)]
pub struct Workshop {
    folder: PathBuf,
}

impl Workshop {
    /// Opens it. What a death left in it is removed.
    pub fn open(folder: PathBuf) -> io::Result<Self> {
        match std::fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        talaria_machine::make_for_us(&folder)?;
        Ok(Self { folder })
    }

    fn bench(&self) -> Result<tempfile::TempDir, VoiceError> {
        tempfile::Builder::new().prefix("voice-").tempdir_in(&self.folder).map_err(broken)
    }
}

/// Has recordings written down by a program.
pub struct ProgramTranscriber {
    /// Where it works.
    pub workshop: Workshop,
    /// Makes WAV of a recording first, for programs that read nothing else.
    pub convert: Option<Program>,
    /// Reads the recording at `{input}` and prints the words, or writes them to `{output}`.
    pub program: Program,
    /// Bytes of what it is converted to.
    pub largest: usize,
}

#[async_trait]
impl Transcriber for ProgramTranscriber {
    async fn transcribe(&self, recording: &Recording) -> Result<String, VoiceError> {
        let bench = self.workshop.bench()?;
        let folder = bench.path();
        let ending = sound::ending(&recording.name, &recording.mime);
        let mut input = folder.join(format!("recording.{ending}"));
        tokio::fs::write(&input, &recording.bytes).await.map_err(broken)?;
        if let Some(convert) = &self.convert {
            let output = folder.join("converted.wav");
            let largest = self.largest;
            let task = Task { folder, input: &input, output: &output, told: &[], largest };
            convert.make(task).await?;
            input = output;
        }
        let output = folder.join("words.txt");
        let largest = LONGEST_WORDS;
        let task = Task { folder, input: &input, output: &output, told: &[], largest };
        let words = self.program.make(task).await?;
        Ok(String::from_utf8_lossy(&words).trim().to_owned())
    }
}

/// Has words spoken by a program.
pub struct ProgramSpeaker {
    /// Where it works.
    pub workshop: Workshop,
    /// Is told the words on its standard input and prints sound, or writes it to `{output}`.
    pub program: Program,
    /// Makes of that what is sent, from `{input}` to `{output}`.
    pub convert: Option<Program>,
    /// What that is.
    pub format: Format,
    /// Bytes of one recording.
    pub largest: usize,
}

/// How much more sound may be before it is converted: it is hardly ever packed.
const UNPACKED: usize = 16;

#[async_trait]
impl Speaker for ProgramSpeaker {
    async fn speak(&self, words: &str) -> Result<Recording, VoiceError> {
        let bench = self.workshop.bench()?;
        let folder = bench.path();
        let (input, output) = (folder.join("words.txt"), folder.join("speech.wav"));
        let largest = match &self.convert {
            Some(_) => self.largest.saturating_mul(UNPACKED),
            None => self.largest,
        };
        if self.program.0.iter().any(|word| word.contains(INPUT)) {
            tokio::fs::write(&input, words).await.map_err(broken)?;
        }
        // Some programs speak every line by itself, and keep the last.
        let line = words.replace('\n', " ");
        let told = line.as_bytes();
        let task = Task { folder, input: &input, output: &output, told, largest };
        let mut bytes = self.program.make(task).await?;
        if let Some(convert) = &self.convert {
            let (input, output) = (output, folder.join(format!("answer.{}", self.format.ending())));
            tokio::fs::write(&input, &bytes).await.map_err(broken)?;
            let largest = self.largest;
            let task = Task { folder, input: &input, output: &output, told: &[], largest };
            bytes = convert.make(task).await?;
        }
        let wished = if self.convert.is_some() { self.format } else { Format::Wav };
        let (ending, mime) = sound::kind(&bytes, wished);
        Ok(Recording { name: format!("answer.{ending}"), mime: mime.into(), bytes })
    }
}
