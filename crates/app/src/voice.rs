//! Who listens and who speaks, from the configuration.

use std::sync::Arc;

use talaria_agent::{Speaker, Transcriber};
use talaria_config::{
    Config, Loaded, SpeakSettings, SpeechFormat, SpokenReplies, TranscribeSettings, words,
};
use talaria_gateway::{Ears, Listens, Mouth};
use talaria_model::Secret;
use talaria_session::{Aloud, Echo, Voice};
use talaria_voice::{
    Endpoint, EndpointSpeaker, EndpointTranscriber, Format, Program, ProgramSpeaker,
    ProgramTranscriber, Workshop, is_there,
};
use url::Url;

use crate::exit::{Exit, Halt};
use crate::home::Home;

/// How many times larger a recording may be that was converted to be listened to.
const UNPACKED: usize = 40;

/// What applies to speaking and to being spoken to.
pub(crate) fn rules(config: &Config) -> Voice {
    let voice = &config.voice;
    let aloud = match voice.replies {
        SpokenReplies::Never => Aloud::Never,
        SpokenReplies::ToVoice => Aloud::ToVoice,
        SpokenReplies::Always => Aloud::Always,
    };
    let shows = voice.transcribe.is_on() && voice.transcribe.echo;
    Voice {
        replies: voice.speak.is_on().then_some(aloud),
        echo: if shows { Echo::Sent } else { Echo::Never },
    }
}

/// What listens to voice messages, if anything is configured to.
pub(crate) fn ears(home: &Home, config: &Config) -> Result<Option<Ears>, Halt> {
    let settings = &config.voice.transcribe;
    let TranscribeSettings { limit, timeout, at_once, audio_files, .. } = settings;
    let largest = config.files.limit.min(*limit).bytes();
    let transcriber: Arc<dyn Transcriber> = match (&settings.base_url, &settings.command) {
        (Some(url), _) => Arc::new(EndpointTranscriber {
            endpoint: endpoint("voice.transcribe", url, settings.api_key.clone(), config)?,
            model: settings.model.clone(),
            language: settings.language.clone(),
        }),
        (None, Some(command)) => Arc::new(ProgramTranscriber {
            workshop: workshop(home, "listening")?,
            convert: settings.convert.as_deref().map(program),
            program: program(command),
            largest: size(largest).saturating_mul(UNPACKED),
        }),
        (None, None) => return Ok(None),
    };
    Ok(Some(Ears {
        transcriber,
        listens: if *audio_files { Listens::ToAllSound } else { Listens::ToVoice },
        largest,
        patience: *timeout,
        at_once: *at_once as usize,
    }))
}

/// What speaks, if anything is configured to.
pub(crate) fn mouth(home: &Home, config: &Config) -> Result<Option<Mouth>, Halt> {
    let settings = &config.voice.speak;
    let largest = size(config.files.limit.bytes());
    let format = match settings.format {
        SpeechFormat::Opus => Format::Opus,
        SpeechFormat::Mp3 => Format::Mp3,
        SpeechFormat::Aac => Format::Aac,
        SpeechFormat::Flac => Format::Flac,
        SpeechFormat::Wav => Format::Wav,
    };
    let SpeakSettings { longest, timeout, at_once, .. } = settings;
    let speaker: Arc<dyn Speaker> = match (&settings.base_url, &settings.command) {
        (Some(url), _) => Arc::new(EndpointSpeaker {
            endpoint: endpoint("voice.speak", url, settings.api_key.clone(), config)?,
            model: settings.model.clone(),
            voice: settings.voice.clone(),
            format,
            largest,
        }),
        (None, Some(command)) => Arc::new(ProgramSpeaker {
            workshop: workshop(home, "speaking")?,
            program: program(command),
            convert: settings.convert.as_deref().map(program),
            format,
            largest,
        }),
        (None, None) => return Ok(None),
    };
    Ok(Some(Mouth {
        speaker,
        longest: *longest as usize,
        patience: *timeout,
        at_once: *at_once as usize,
    }))
}

fn endpoint(path: &str, url: &Url, key: Option<Secret>, config: &Config) -> Result<Endpoint, Halt> {
    Endpoint::new(url.clone(), key, config.network.proxy.clone()).map_err(|error| {
        Halt::new(Exit::Misused, format_args!("{path} cannot be used: {error}"))
            .hint(format!("check `{path}` in config.yaml"))
    })
}

fn workshop(home: &Home, name: &str) -> Result<Workshop, Halt> {
    let folder = home.voice().join(name);
    Workshop::open(folder.clone()).map_err(|error| {
        Halt::failed(format_args!("cannot use {} for programs: {error}", folder.display()))
    })
}

/// The configuration has seen to it that there are words.
fn program(command: &str) -> Program {
    Program(words(command).unwrap_or_default())
}

fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Who listens and who speaks, in a few words; none where nobody does.
pub(crate) fn summary(config: &Config) -> Option<String> {
    let (transcribe, speak) = (&config.voice.transcribe, &config.voice.speak);
    let by = |url: Option<&Url>, model: &str, command: Option<&String>| {
        let host = url.and_then(|url| Some(format!("{model} at {}", url.host_str()?)));
        host.or_else(|| Some(words(command?)?.remove(0)))
    };
    let listens = by(transcribe.base_url.as_ref(), &transcribe.model, transcribe.command.as_ref());
    let speaks = by(speak.base_url.as_ref(), &speak.model, speak.command.as_ref());
    match (listens, speaks) {
        (None, None) => None,
        (Some(listens), None) => Some(format!("listens by {listens}")),
        (None, Some(speaks)) => Some(format!("speaks by {speaks}")),
        (Some(listens), Some(speaks)) => Some(format!("listens by {listens}, speaks by {speaks}")),
    }
}

/// Programs that the configuration names and that are not there.
pub(crate) fn oddities(loaded: &Loaded) -> Vec<String> {
    let voice = &loaded.config().voice;
    let named = [
        ("voice.transcribe.convert", &voice.transcribe.convert),
        ("voice.transcribe.command", &voice.transcribe.command),
        ("voice.speak.command", &voice.speak.command),
        ("voice.speak.convert", &voice.speak.convert),
    ];
    let missing = named.into_iter().filter_map(|(path, command)| {
        let program = words(command.as_ref()?)?.remove(0);
        let expectation =
            "names a program that is not on this machine; install it, or write its path";
        (!is_there(&program)).then(|| loaded.object(path, &program, expectation).to_string())
    });
    missing.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use talaria_config::Sources;

    fn loaded(yaml: &str) -> Loaded {
        let sources = Sources::default().with_config(yaml);
        talaria_config::load(sources, talaria_platforms::ALL).expect("it is right")
    }

    #[test]
    fn without_a_word_nobody_listens_and_nobody_speaks() {
        let config = loaded("").config().clone();
        assert_eq!(rules(&config), Voice::default());
        assert_eq!(summary(&config), None);
    }

    #[test]
    fn what_is_configured_applies() {
        let both = loaded(
            "voice:\n  replies: always\n  transcribe: {base_url: 'https://a.example/v1'}\n  speak: \
             {command: sh -c cat}\n",
        );
        let aloud = Voice { replies: Some(Aloud::Always), echo: Echo::Sent };
        assert_eq!(rules(both.config()), aloud);
        let told = "listens by whisper-1 at a.example, speaks by sh";
        assert_eq!(summary(both.config()).as_deref(), Some(told));
        assert!(oddities(&both).is_empty());
        let quiet = loaded("voice: {transcribe: {base_url: 'https://a.example/v1', echo: false}}");
        assert_eq!(rules(quiet.config()), Voice::default());
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let odd = oddities(&loaded("voice: {speak: {command: no-such-speaker -x}}"));
        assert_eq!(
            odd,
            [
                "config.yaml:1: voice.speak.command: \"no-such-speaker\" names a program that is not on this machine; install it, or write its path"
            ]
        );
    }
}
