//! Small programs that listen and speak.

use std::time::Duration;

use talaria_agent::{Recording, Speaker, Transcriber, VoiceError};
use talaria_voice::{Format, Program, ProgramSpeaker, ProgramTranscriber, Workshop, is_there};

fn shell(line: &str, arguments: &[&str]) -> Program {
    let words = [&["/bin/sh", "-c", line, "sh"], arguments].concat();
    Program(words.into_iter().map(str::to_owned).collect())
}

struct Bench {
    _home: tempfile::TempDir,
    workshop: Workshop,
    folder: std::path::PathBuf,
}

impl Bench {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("voice");
        Self { workshop: Workshop::open(folder.clone()).unwrap(), folder, _home: home }
    }

    fn hears(&self, program: Program, convert: Option<Program>) -> ProgramTranscriber {
        let workshop = self.workshop.clone();
        ProgramTranscriber { workshop, convert, program, largest: 1000 }
    }

    fn speaks(&self, program: Program, convert: Option<Program>) -> ProgramSpeaker {
        let workshop = self.workshop.clone();
        ProgramSpeaker { workshop, convert, program, format: Format::Opus, largest: 1000 }
    }

    fn left(&self) -> usize {
        std::fs::read_dir(&self.folder).unwrap().count()
    }
}

fn recording() -> Recording {
    let (name, mime) = ("a b;$(touch x).oga".into(), "audio/ogg".into());
    Recording { name, mime, bytes: b"hello".into() }
}

fn reason(error: VoiceError) -> String {
    let VoiceError::Refused { reason } = error else { panic!("{error}") };
    reason
}

#[tokio::test]
async fn a_program_prints_the_words_or_writes_them() {
    let bench = Bench::new();
    let prints = bench.hears(shell("cat \"$1\"; echo", &["{input}"]), None);
    assert_eq!(prints.transcribe(&recording()).await.unwrap(), "hello");
    let writes = shell("echo noise; cat \"$1\" > \"$2\"", &["{input}", "{output}"]);
    let writes = bench.hears(writes, None);
    assert_eq!(writes.transcribe(&recording()).await.unwrap(), "hello");
    assert_eq!(bench.left(), 0, "nothing is left behind");
}

#[tokio::test]
async fn a_recording_is_converted_first_where_that_is_configured() {
    let bench = Bench::new();
    let convert = shell("tr a-z A-Z < \"$1\" > \"$2\"", &["{input}", "{output}"]);
    let named = shell("cat \"$1\"; basename \"$1\"", &["{input}"]);
    let hears = bench.hears(named, Some(convert));
    assert_eq!(hears.transcribe(&recording()).await.unwrap(), "HELLOconverted.wav");
}

#[tokio::test]
async fn words_reach_a_program_on_its_standard_input_and_never_as_arguments() {
    let bench = Bench::new();
    let speaks = bench.speaks(shell("cat; echo; echo $#", &[]), None);
    let words = "--help; $(touch x) `touch y`";
    let spoken = speaks.speak(&words.replace("; ", ";\n")).await.unwrap();
    assert_eq!(String::from_utf8(spoken.bytes).unwrap(), format!("{words}\n0\n"));
    assert_eq!((spoken.name.as_str(), spoken.mime.as_str()), ("answer.wav", "audio/wav"));
}

#[tokio::test]
async fn speech_is_converted_to_what_is_sent() {
    let bench = Bench::new();
    let program = shell("cat > \"$1\"", &["{output}"]);
    let convert = shell("(printf OggS; cat \"$1\") > \"$2\"", &["{input}", "{output}"]);
    let spoken = bench.speaks(program, Some(convert)).speak("hello").await.unwrap();
    assert_eq!(spoken.bytes, b"OggShello");
    assert_eq!((spoken.name.as_str(), spoken.mime.as_str()), ("answer.ogg", "audio/ogg"));
    assert_eq!(bench.left(), 0);
}

#[tokio::test]
async fn what_goes_wrong_is_said_in_a_few_words() {
    let bench = Bench::new();
    let fails = async |program: Program| {
        reason(bench.hears(program, None).transcribe(&recording()).await.unwrap_err())
    };
    assert_eq!(
        fails(shell("echo one >&2; echo no such model >&2; exit 3", &[])).await,
        "`/bin/sh` ended with exit status: 3: no such model"
    );
    assert_eq!(fails(shell(": {output}", &[])).await, "`/bin/sh` wrote nothing");
    let missing = fails(Program(vec!["/nowhere/at/all".into()])).await;
    assert!(missing.starts_with("`/nowhere/at/all` cannot be run: "), "{missing}");
    let much = bench.speaks(shell("head -c 2000 /dev/zero", &[]), None);
    let much = reason(much.speak("hello").await.unwrap_err());
    assert_eq!(much, "`/bin/sh` printed more than 1000 bytes");
    let much = bench.speaks(shell("head -c 2000 /dev/zero > \"$1\"", &["{output}"]), None);
    let much = reason(much.speak("hello").await.unwrap_err());
    assert_eq!(much, "`/bin/sh` wrote more than 1000 bytes");
    let sly = bench.speaks(shell("ln -s /etc/hostname \"$1\"", &["{output}"]), None);
    assert!(sly.speak("hello").await.is_err(), "it wrote no file");
    assert_eq!(bench.left(), 0);
}

#[tokio::test]
async fn a_program_that_prints_much_before_it_listens_does_not_stand_still() {
    let bench = Bench::new();
    let mut loud = bench.speaks(shell("head -c 300000 /dev/zero; cat", &[]), None);
    loud.largest = 1_000_000;
    let spoken = loud.speak(&"x".repeat(300_000)).await.unwrap();
    assert_eq!(spoken.bytes.len(), 600_000);
}

#[tokio::test]
async fn it_gets_no_secrets() {
    let bench = Bench::new();
    let spoken = bench.speaks(shell("env", &[]), None).speak("").await.unwrap();
    let own = ["PWD", "OLDPWD", "SHLVL", "_", "TMPDIR"];
    let passed_on = ["PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ"];
    for line in String::from_utf8(spoken.bytes).unwrap().lines() {
        let name = line.split('=').next().unwrap();
        assert!(own.contains(&name) || passed_on.contains(&name), "{name}");
    }
}

#[tokio::test]
async fn what_is_not_waited_for_any_more_ends_with_its_children() {
    let bench = Bench::new();
    let told = bench.folder.join("told");
    let line = format!("sleep 1000 & echo $! > {}; wait", told.display());
    let slow = bench.speaks(shell(&line, &[]), None);
    let id = tokio::select! {
        _ = slow.speak("hello") => panic!("it never ends"),
        id = async {
            loop {
                let told = std::fs::read_to_string(&told).unwrap_or_default();
                match told.trim().parse::<i32>() {
                    Ok(id) => break id,
                    Err(_) => tokio::task::yield_now().await,
                }
            }
        } => id,
    };
    let is_there = || {
        let state = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        state.split(") ").nth(1).is_some_and(|rest| !rest.starts_with('Z'))
    };
    talaria_testkit::within(Duration::from_secs(10), "its end", async {
        while is_there() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn what_it_leaves_running_holds_up_nobody() {
    let bench = Bench::new();
    let spoken = bench.speaks(shell("cat; sleep 1000 &", &[]), None).speak("hello").await.unwrap();
    assert_eq!(spoken.bytes, b"hello");
}

#[test]
fn a_workshop_is_swept_when_it_is_opened() {
    let bench = Bench::new();
    std::fs::write(bench.folder.join("left"), "by a death").unwrap();
    Workshop::open(bench.folder.clone()).unwrap();
    assert_eq!(bench.left(), 0);
}

#[test]
fn programs_are_looked_for_where_they_would_be_found() {
    assert!(is_there("sh") && is_there("/bin/sh"));
    assert!(!is_there("no-such-program-anywhere") && !is_there("/nowhere/at/all"));
}
