//! An audio API on this machine that refuses what does not look as it should.

use std::time::Duration;

use talaria_agent::{Recording, Speaker, Transcriber, VoiceError};
use talaria_model::{Proxy, Secret};
use talaria_testkit::audio::{AudioServer, Field, KEY, SOUND};
use talaria_testkit::scripted::{Fault, Reply};
use talaria_voice::{Endpoint, EndpointSpeaker, EndpointTranscriber, Format, SetupError};

fn endpoint(base_url: &str, key: &str) -> Endpoint {
    Endpoint::new(base_url.parse().unwrap(), Some(Secret::new(key)), Proxy::None).unwrap()
}

fn transcriber(base_url: &str, key: &str) -> EndpointTranscriber {
    let language = Some("en".to_owned());
    EndpointTranscriber { endpoint: endpoint(base_url, key), model: "whisper-1".into(), language }
}

fn speaker(base_url: &str) -> EndpointSpeaker {
    EndpointSpeaker {
        endpoint: endpoint(base_url, KEY),
        model: "tts-1".into(),
        voice: "alloy".into(),
        format: Format::Opus,
        largest: 100,
    }
}

fn recording(words: &str) -> Recording {
    let bytes = [SOUND, words.as_bytes()].concat();
    Recording { name: "../voice message.ogg".into(), mime: "audio/ogg".into(), bytes }
}

fn field(name: &str, value: &str) -> Field {
    Field { name: name.into(), file: None, mime: None, value: value.into() }
}

#[tokio::test]
async fn a_recording_is_sent_as_the_api_documents_it() {
    let server = AudioServer::open().await;
    // An address may end in a slash or not.
    for base_url in [server.base_url(), format!("{}/", server.base_url())] {
        let words = transcriber(&base_url, KEY).transcribe(&recording("hello\r\n--x")).await;
        assert_eq!(words.unwrap(), "hello\r\n--x");
    }
    let file = Field {
        file: Some("recording.ogg".into()),
        mime: Some("audio/ogg".into()),
        value: recording("hello\r\n--x").bytes,
        ..field("file", "")
    };
    let others =
        [field("model", "whisper-1"), field("response_format", "json"), field("language", "en")];
    let fields: Vec<Field> = std::iter::once(file).chain(others).collect();
    assert_eq!(server.transcribed(), [fields.clone(), fields]);
}

#[tokio::test]
async fn words_are_sent_as_the_api_documents_them_and_sound_comes_back() {
    let server = AudioServer::open().await;
    let spoken = speaker(&server.base_url()).speak("Hello \"there\".").await.unwrap();
    assert_eq!((spoken.name.as_str(), spoken.mime.as_str()), ("answer.ogg", "audio/ogg"));
    assert_eq!(spoken.bytes, [SOUND, b"Hello \"there\"."].concat());
    assert_eq!(
        server.spoken()[0].to_string(),
        r#"{"model":"tts-1","input":"Hello \"there\".","voice":"alloy","response_format":"opus"}"#
    );
}

#[tokio::test]
async fn what_goes_wrong_says_what_to_do() {
    let server = AudioServer::open().await;
    let ask = async |reply: Reply| {
        server.fault(Fault::Instead(reply));
        transcriber(&server.base_url(), KEY).transcribe(&recording("x")).await.unwrap_err()
    };
    let later = |reason: &str, seconds: Option<u64>| VoiceError::Unavailable {
        reason: reason.into(),
        after: seconds.map(Duration::from_secs),
    };
    let never = |reason: &str| VoiceError::Refused { reason: reason.into() };
    let busy = "the audio server is busy";
    assert_eq!(ask(Reply::status(429, "")).await, later(busy, None));
    assert_eq!(ask(Reply::status(429, "").with("retry-after", "7")).await, later(busy, Some(7)));
    let patient = Reply::status(429, "").with("retry-after", "86400");
    assert_eq!(ask(patient).await, later(busy, Some(60)));
    let problem = later("the audio server has a problem (503)", None);
    assert_eq!(ask(Reply::status(503, "")).await, problem);
    assert_eq!(ask(Reply::Cut).await, later("the connection to the audio server broke", None));
    let body = format!(r#"{{"error":{{"message":"no\nsuch model for {KEY}"}}}}"#);
    let refused = never("the audio server refuses it (400: no such model for …)");
    assert_eq!(ask(Reply::status(400, body)).await, refused);
    let moved = Reply::status(307, "").with("location", "http://127.0.0.1:1/");
    assert_eq!(ask(moved).await, never("the audio server refuses it (307)"));
    let wrong = never("the audio server answers with no text");
    assert_eq!(ask(Reply::status(200, "<html>")).await, wrong);
    let much = Reply::status(200, vec![b'x'; 2 * 1024 * 1024]);
    assert_eq!(ask(much).await, never("the audio server says too much"));
    let stranger = transcriber(&server.base_url(), "sk-of-somebody-else");
    let refused = stranger.transcribe(&recording("x")).await.unwrap_err();
    assert_eq!(refused, never("the audio server does not accept the key"));
    let nowhere = transcriber("http://127.0.0.1:1/v1", KEY);
    let lost = nowhere.transcribe(&recording("x")).await.unwrap_err();
    assert_eq!(lost, later("the audio server cannot be reached", None));
    let long = speaker(&server.base_url()).speak(&"x".repeat(100)).await.unwrap_err();
    assert_eq!(long, never("the audio server says too much"));
}

#[test]
fn what_cannot_be_called_is_said_at_once() {
    let new = |url: &str, key: &str| {
        Endpoint::new(url.parse().unwrap(), Some(Secret::new(key)), Proxy::None)
    };
    assert_eq!(new("file:///etc", "k").err(), Some(SetupError::Address));
    assert_eq!(new("https://a.example/v1", "k\n").err(), Some(SetupError::Key));
}
