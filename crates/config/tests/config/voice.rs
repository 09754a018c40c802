//! Voice messages and spoken answers.

use std::time::Duration;

use talaria_config::{SpeechFormat, SpokenReplies};

use crate::{loaded, problems};

fn warned(yaml: &str, variables: &[&str]) -> Vec<String> {
    loaded(yaml, variables).warnings().iter().map(ToString::to_string).collect()
}

#[test]
fn nothing_is_listened_to_and_nothing_spoken_unless_it_is_set_up() {
    // Whatever keys there are.
    let config = loaded("", &["OPENAI_API_KEY=sk-1", "GROQ_API_KEY=gsk-1"]).config().clone();
    assert!(!config.voice.transcribe.is_on() && !config.voice.speak.is_on());
    assert!(config.voice.transcribe.api_key.is_none() && config.voice.speak.api_key.is_none());
    assert!(!loaded("voice: {replies: never}", &[]).config().voice.speak.is_on());
}

#[test]
fn an_audio_api_is_named_with_its_key() {
    let yaml = "voice:\n  replies: always\n  transcribe:\n    base_url: https://api.example/v1\n    \
                api_key_env: AUDIO_KEY\n    language: de\n  speak:\n    \
                base_url: http://localhost:8000/v1\n    api_key: sk-2\n    voice: nova\n    \
                format: mp3\n    timeout: 30s\n";
    let voice = loaded(yaml, &["AUDIO_KEY=sk-1"]).config().voice.clone();
    assert!(voice.transcribe.is_on() && voice.speak.is_on());
    assert_eq!(voice.replies, SpokenReplies::Always);
    assert_eq!(voice.transcribe.api_key.unwrap().expose(), "sk-1");
    assert_eq!(voice.speak.api_key.unwrap().expose(), "sk-2");
    assert_eq!((voice.speak.voice.as_str(), voice.speak.format), ("nova", SpeechFormat::Mp3));
    assert_eq!(voice.speak.timeout, Duration::from_secs(30));
    assert_eq!(warned(yaml, &["AUDIO_KEY=sk-1"]), [""; 0]);
}

#[test]
fn one_key_may_open_models_and_audio_and_nothing_else() {
    let shared = "providers: {openai: {api_key: sk-1}}\n\
                  voice: {speak: {base_url: 'https://api.openai.com/v1', api_key: sk-1}}\n";
    loaded(shared, &[]);
    let leaked = "accounts: {pigeon: {token: sk-1, allow: [1]}}\n\
                  voice: {speak: {base_url: 'https://api.openai.com/v1', api_key: sk-1}}\n";
    assert!(problems(leaked, &[]).contains("is the same secret as"));
}

#[test]
fn what_cannot_work_is_refused_by_its_name() {
    for (yaml, expected) in [
        (
            "voice: {replies: loudly}",
            "config.yaml:1: voice.replies: \"loudly\" is not one of never, to_voice, always",
        ),
        (
            "voice: {speak: {base_url: 'https://a.example/v1', command: espeak-ng}}",
            "config.yaml:1: voice.speak.command: \"espeak-ng\" is one way too many, because base_url is set too; keep one",
        ),
        (
            "voice: {transcribe: {command: whisper-cli -f recording}}",
            "config.yaml:1: voice.transcribe.command: \"whisper-cli -f recording\" has no place for a file; write {input} where its path belongs",
        ),
        (
            "voice:\n  speak:\n    command: espeak-ng\n    convert: opusenc {input} -",
            "config.yaml:4: voice.speak.convert: \"opusenc {input} -\" has no place for a file; write {output} where its path belongs",
        ),
        (
            "voice: {speak: {command: piper | opusenc}}",
            "config.yaml:1: voice.speak.command: \"piper | opusenc\" needs a shell, and there is none; name a script that does it instead",
        ),
        (
            "voice: {speak: {command: \"say 'hm\"}}",
            "config.yaml:1: voice.speak.command: \"say 'hm\" has no words, or a quote that is not closed",
        ),
        (
            "voice: {speak: {command: espeak-ng, timeout: 10m}}",
            "config.yaml:1: voice.speak.timeout: 10m is too long; the most is 4m",
        ),
        (
            "voice: {speak: {command: espeak-ng, format: ogg}}",
            "config.yaml:1: voice.speak.format: \"ogg\" is not one of opus, mp3, aac, flac, wav",
        ),
        (
            "voice: {transcribe: {base_url: 'https://a.example/v1', api_key_env: NO_KEY}}",
            "config.yaml:1: voice.transcribe.api_key_env: \"NO_KEY\" is not set; put it into .env or the environment, or remove api_key_env",
        ),
    ] {
        assert_eq!(problems(yaml, &[]), expected, "{yaml}");
    }
}

#[test]
fn what_makes_no_difference_is_said() {
    for (yaml, expected) in [
        (
            "voice: {replies: always}",
            "config.yaml:1: voice.replies: makes no difference, because voice.speak has neither base_url nor command",
        ),
        (
            "voice: {speak: {command: espeak-ng, voice: nova}}",
            "config.yaml:1: voice.speak.voice: makes no difference without voice.speak.base_url",
        ),
        (
            "voice:\n  transcribe:\n    convert: ffmpeg -i {input} {output}",
            "config.yaml:3: voice.transcribe.convert: makes no difference without voice.transcribe.command",
        ),
    ] {
        assert_eq!(warned(yaml, &[]), [expected], "{yaml}");
    }
}
