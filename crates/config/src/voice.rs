//! Settings of voice messages and spoken answers, and what must hold between them.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talaria_model::Secret;
use url::Url;

use crate::conversations::{needs_shell, words};
use crate::finding::Finding;
use crate::known::below;
use crate::rules::{Origins, Verdict};
use crate::settings::optional_url;
use crate::single::brief;
use crate::units::{ByteSize, DurationText, UrlText, duration_text, write_duration};

/// Voice messages and spoken answers. Nothing is listened to and nothing is spoken unless it is set up
/// here: no key that is found elsewhere is used for it.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct VoiceSettings {
    /// Which answers are spoken, behind the written ones, where nobody has chosen otherwise with
    /// `/voice`. It needs `voice.speak`.
    pub replies: SpokenReplies,

    /// Who writes down what is said in voice messages: an audio API at `base_url`, or a `command`.
    pub transcribe: TranscribeSettings,

    /// Who speaks answers: an audio API at `base_url`, or a `command`.
    pub speak: SpeakSettings,
}

/// Which answers are spoken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SpokenReplies {
    /// None.
    Never,
    /// Those to voice messages.
    #[default]
    ToVoice,
    /// All.
    Always,
}

/// Who writes down what is said in voice messages.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TranscribeSettings {
    /// Where an audio API as OpenAI's is, including the version, like `https://api.openai.com/v1`.
    #[serde(deserialize_with = "optional_url")]
    #[schemars(with = "Option<UrlText>")]
    pub base_url: Option<Url>,

    // Once loaded, the key is here, whichever of the two settings led to it.
    /// The key to it. Better kept in `.env` and named by `api_key_env`.
    pub api_key: Option<Secret>,

    /// The environment variable that holds the key.
    #[schemars(length(min = 1))]
    pub api_key_env: Option<String>,

    /// The model, as the API names it.
    #[schemars(length(min = 1))]
    pub model: String,

    /// The language that people speak, like `en` or `de`. When it is not set, the API finds out.
    #[schemars(length(min = 2, max = 16))]
    pub language: Option<String>,

    /// A program on this machine instead of an API, like `whisper-cli -np -nt -m /models/base.bin -f
    /// {input}`. `{input}` is the recording. It prints the words, or writes them to `{output}`. No shell
    /// reads it, and it gets no secrets.
    #[schemars(length(min = 1))]
    pub command: Option<String>,

    /// A program that makes WAV of a recording first, like `ffmpeg -i {input} -ar 16000 -ac 1
    /// {output}`, for a `command` that reads nothing else.
    #[schemars(length(min = 1))]
    pub convert: Option<String>,

    /// How long a message waits for it. Then it is answered without, and the agent is told so.
    #[serde(with = "duration_text")]
    #[schemars(with = "DurationText")]
    pub timeout: Duration,

    /// The largest recording that is listened to.
    pub limit: ByteSize,

    /// How many recordings are listened to at the same time.
    #[schemars(range(min = 1, max = 64))]
    pub at_once: u32,

    /// Whether other sound that comes with a message is listened to as well, such as music.
    pub audio_files: bool,

    /// Whether people are shown what was understood.
    #[schemars(extend("x-synonyms" = ["echo_transcripts"]))]
    pub echo: bool,
}

impl Default for TranscribeSettings {
    fn default() -> Self {
        Self {
            base_url: None,
            api_key: None,
            api_key_env: None,
            model: "whisper-1".into(),
            language: None,
            command: None,
            convert: None,
            timeout: Duration::from_secs(120),
            limit: ByteSize::from_megabytes(25),
            at_once: 2,
            audio_files: false,
            echo: true,
        }
    }
}

/// Who speaks answers.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SpeakSettings {
    /// Where an audio API as OpenAI's is, including the version, like `https://api.openai.com/v1`.
    #[serde(deserialize_with = "optional_url")]
    #[schemars(with = "Option<UrlText>")]
    pub base_url: Option<Url>,

    // Once loaded, the key is here, whichever of the two settings led to it.
    /// The key to it. Better kept in `.env` and named by `api_key_env`.
    pub api_key: Option<Secret>,

    /// The environment variable that holds the key.
    #[schemars(length(min = 1))]
    pub api_key_env: Option<String>,

    /// The model, as the API names it.
    #[schemars(length(min = 1))]
    pub model: String,

    /// The voice, as the API names it.
    #[schemars(length(min = 1))]
    pub voice: String,

    /// What is sent: what the API is asked for, and what `convert` makes. Only Opus is a voice message
    /// on every platform that has them.
    pub format: SpeechFormat,

    /// A program on this machine instead of an API, like `espeak-ng --stdin -w {output}`. It reads the
    /// words on its standard input, and prints sound or writes it to `{output}`. No shell reads it, and
    /// it gets no secrets.
    #[schemars(length(min = 1))]
    pub command: Option<String>,

    /// A program that makes of that what is sent, like `opusenc --quiet {input} {output}`.
    #[schemars(length(min = 1))]
    pub convert: Option<String>,

    /// How long it may take; then an answer is not spoken. At most four minutes.
    #[serde(with = "duration_text")]
    #[schemars(with = "DurationText")]
    pub timeout: Duration,

    /// The most of an answer that is spoken, in characters. Code is never spoken.
    #[schemars(range(min = 1, max = 16_000))]
    pub longest: u32,

    /// How many answers are spoken at the same time.
    #[schemars(range(min = 1, max = 64))]
    pub at_once: u32,
}

impl Default for SpeakSettings {
    fn default() -> Self {
        Self {
            base_url: None,
            api_key: None,
            api_key_env: None,
            model: "tts-1".into(),
            voice: "alloy".into(),
            format: SpeechFormat::Opus,
            command: None,
            convert: None,
            timeout: Duration::from_secs(120),
            longest: 4_000,
            at_once: 2,
        }
    }
}

/// How speech is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SpeechFormat {
    /// Opus in Ogg.
    Opus,
    /// MP3.
    Mp3,
    /// AAC.
    Aac,
    /// FLAC.
    Flac,
    /// WAV.
    Wav,
}

impl TranscribeSettings {
    /// Whether anything listens.
    pub fn is_on(&self) -> bool {
        self.base_url.is_some() || self.command.is_some()
    }
}

impl SpeakSettings {
    /// Whether anything speaks.
    pub fn is_on(&self) -> bool {
        self.base_url.is_some() || self.command.is_some()
    }
}

/// The longest that speaking may take: nobody waits longer than that for an answer to be spoken.
const LONGEST_SPEAKING: Duration = Duration::from_secs(4 * 60);

/// What listening and speaking have in common.
struct Way<'a> {
    path: &'static str,
    base_url: Option<&'a Url>,
    command: Option<&'a str>,
    convert: Option<&'a str>,
    /// What a command has to be given a place for.
    needs: Option<&'static str>,
}

pub(crate) fn check(voice: &VoiceSettings, origins: &Origins<'_>, verdict: &mut Verdict) {
    let VoiceSettings { transcribe, speak, .. } = voice;
    let ways = [
        Way {
            path: "voice.transcribe",
            base_url: transcribe.base_url.as_ref(),
            command: transcribe.command.as_deref(),
            convert: transcribe.convert.as_deref(),
            needs: Some("{input}"),
        },
        Way {
            path: "voice.speak",
            base_url: speak.base_url.as_ref(),
            command: speak.command.as_deref(),
            convert: speak.convert.as_deref(),
            needs: None,
        },
    ];
    for way in &ways {
        check_way(way, origins, verdict);
    }
    let path = "voice.replies";
    if !speak.is_on() && origins.is_set(path) && voice.replies != SpokenReplies::Never {
        let expectation =
            "makes no difference, because voice.speak has neither base_url nor command";
        verdict.warnings.push(Finding::at(&origins.of(path), path, expectation));
    }
    if speak.timeout > LONGEST_SPEAKING {
        let path = "voice.speak.timeout";
        let finding = Finding::at(&origins.of(path), path, "is too long; the most is 4m");
        verdict.problems.push(finding.with_value(write_duration(speak.timeout)));
    }
}

fn check_way(way: &Way<'_>, origins: &Origins<'_>, verdict: &mut Verdict) {
    let Way { path, base_url, command, convert, needs } = way;
    let at = |key: &str| below(path, key);
    if let (Some(_), Some(command)) = (base_url, command) {
        let path = at("command");
        let expectation = "is one way too many, because base_url is set too; keep one";
        let finding = Finding::at(&origins.of(&path), &path, expectation);
        verdict.problems.push(finding.with_value(format!("{:?}", brief(command))));
    }
    if let Some(command) = command {
        check_command(&at("command"), command, needs.as_slice(), origins, verdict);
    }
    if let Some(convert) = convert {
        check_command(&at("convert"), convert, &["{input}", "{output}"], origins, verdict);
    }
    let mut is_idle = |keys: &[&str], without: &str| {
        for path in keys.iter().map(|key| at(key)).filter(|path| origins.is_set(path)) {
            let expectation = format!("makes no difference without {}", at(without));
            verdict.warnings.push(Finding::at(&origins.of(&path), &path, expectation));
        }
    };
    if base_url.is_none() {
        is_idle(&["api_key", "api_key_env", "model", "language", "voice"], "base_url");
    }
    if command.is_none() {
        is_idle(&["convert"], "command");
    }
}

fn check_command(
    path: &str,
    command: &str,
    needs: &[&str],
    origins: &Origins<'_>,
    verdict: &mut Verdict,
) {
    let mut refuse = |expectation: String| {
        let finding = Finding::at(&origins.of(path), path, expectation);
        verdict.problems.push(finding.with_value(format!("{:?}", brief(command))));
    };
    if command.contains('\0') {
        refuse("holds a character that no command may have".into());
    } else if words(command).is_none() {
        refuse("has no words, or a quote that is not closed".into());
    } else if needs_shell(command) {
        refuse("needs a shell, and there is none; name a script that does it instead".into());
    } else if let Some(place) = needs.iter().find(|place| !command.contains(**place)) {
        refuse(format!("has no place for a file; write {place} where its path belongs"));
    }
}
