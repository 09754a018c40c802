//! Voice messages in, spoken answers out, and pictures for models that see: a messenger, an audio server
//! or programs, and the binary.

use serde_json::{Value, json};
use talaria_testkit::audio::{AudioServer, KEY, SOUND};
use talaria_testkit::vendors::telegram::{TOKEN, Vendor};
use talaria_testkit::{FakeLlm, GatewayProcess, Home, Launch, Reply, within};

use crate::rig::{HANGS, binary, run};

/// A gateway between Telegram and a model.
struct Stage {
    vendor: Vendor,
    llm: FakeLlm,
    home: Home,
}

impl Stage {
    async fn new(voice: &str) -> Self {
        Self::with("", voice).await
    }

    /// The same with more settings of the model's provider.
    async fn with(provider: &str, voice: &str) -> Self {
        let (vendor, llm) = (Vendor::open().await, FakeLlm::open().await.unwrap());
        llm.script(|_| Reply::Says("**Hi** there".into()));
        let home = Home::empty().unwrap();
        let config = format!(
            "model: fake/test-model\n\
             providers: {{fake: {{wire: openai, base_url: \"{}\", api_key: x{provider}}}}}\n\
             accounts: {{telegram: {{base_url: \"{}\", allow: [7]}}}}\n\
             streaming: {{transport: off}}\n{voice}",
            llm.base_url(),
            vendor.url,
        );
        home.write("config.yaml", &config).unwrap();
        Self { vendor, llm, home }
    }

    async fn start(&self) -> GatewayProcess {
        let mut process = Launch::new(binary())
            .environment("TELEGRAM_BOT_TOKEN", TOKEN)
            .environment("AUDIO_KEY", KEY)
            .start(self.home.path())
            .unwrap();
        within(HANGS, "the ready line", process.ready()).await.unwrap();
        process
    }

    /// Somebody speaks.
    fn speaks(&self, words: &str) {
        let mut update = self.vendor.said(7, "");
        let recording = [SOUND, words.as_bytes()].concat();
        update["message"]["voice"] = json!({
            "file_id": "voice-1", "file_unique_id": "v1", "duration": 2,
            "mime_type": "audio/ogg", "file_size": recording.len(),
        });
        update["message"].as_object_mut().unwrap().shift_remove("text");
        self.vendor.truth().files.insert("voice-1".into(), ("voice/1.oga".into(), recording));
        self.vendor.push(update);
    }

    /// What the bot sends next, with its name and what it says.
    async fn sends(&self) -> (String, Value) {
        loop {
            let shown = within(HANGS, "the next message", self.vendor.shown()).await;
            if shown.method != "sendChatAction" {
                return (shown.method, shown.body);
            }
        }
    }

    /// What the model was told last.
    fn told(&self) -> String {
        let request: Value = serde_json::from_slice(&self.llm.last_request()).unwrap();
        let messages = request["messages"].as_array().unwrap();
        messages.last().unwrap()["content"].to_string()
    }
}

#[tokio::test]
async fn a_voice_message_is_understood_and_answered_aloud_by_an_audio_server() {
    let server = AudioServer::open().await;
    let way = format!("{{base_url: \"{}\", api_key_env: AUDIO_KEY}}", server.base_url());
    let stage = Stage::new(&format!("voice: {{transcribe: {way}, speak: {way}}}\n")).await;
    let process = stage.start().await;
    stage.speaks("good morning");
    let (method, echo) = stage.sends().await;
    assert_eq!((method.as_str(), &echo["text"]), ("sendMessage", &json!("🎙️ good morning")));
    let (method, written) = stage.sends().await;
    assert_eq!((method.as_str(), &written["text"]), ("sendMessage", &json!("Hi there")));
    let (method, spoken) = stage.sends().await;
    assert_eq!(method, "sendVoice", "{spoken}");
    assert_eq!(spoken["voice"]["bytes"], "OggS\0Hi there.");
    assert_eq!(spoken["voice"]["mime"], "audio/ogg");
    let told = stage.told();
    assert!(told.contains("[[Voice message, written down by a machine]]\\ngood morning"), "{told}");
    assert_eq!(server.transcribed().len(), 1);
    let (_, status) = run(stage.home.path(), &["status"]).await;
    let expected = "voice: listens by whisper-1 at 127.0.0.1, speaks by tts-1 at 127.0.0.1";
    assert!(status.contains(expected), "{status}");
    process.kill().await.unwrap();
}

#[tokio::test]
async fn programs_listen_and_speak_and_what_a_kill_cut_off_is_spoken_by_the_next_process() {
    // A speaker that takes its time until it is let go on.
    let gate = Home::empty().unwrap();
    let path = gate.path().display();
    gate.write("listen", "tail -c +6 \"$1\"\n").unwrap();
    let wait = format!("touch {path}/begun; while [ ! -e {path}/open ]; do sleep 0.05; done");
    gate.write("speak", &format!("{wait}; cat > \"$1\"\n")).unwrap();
    gate.write("convert", "(printf 'OggS\\000'; cat \"$1\") > \"$2\"\n").unwrap();
    let voice = format!(
        "voice:\n  transcribe:\n    command: sh {path}/listen {{input}}\n    echo: false\n  \
         speak:\n    command: sh {path}/speak {{output}}\n    \
         convert: sh {path}/convert {{input}} {{output}}\n"
    );
    let stage = Stage::new(&voice).await;
    let process = stage.start().await;
    stage.speaks("good morning");
    let (method, written) = stage.sends().await;
    assert_eq!((method.as_str(), &written["text"]), ("sendMessage", &json!("Hi there")));
    assert!(stage.told().contains("good morning"));
    let begun = async {
        while !gate.file("begun").exists() {
            tokio::task::yield_now().await;
        }
    };
    within(HANGS, "somebody to speak", begun).await;
    process.kill().await.unwrap();
    gate.write("open", "").unwrap();
    let process = stage.start().await;
    let spoken = loop {
        let (method, body) = stage.sends().await;
        if method == "sendVoice" {
            break body;
        }
        // The kill may have come before it was known that the written answer had arrived.
        let text = body["text"].as_str().unwrap();
        assert!(text.starts_with("(sent again after an interruption"), "{body}");
    };
    assert_eq!(spoken["voice"]["bytes"], "OggS\0Hi there.");
    assert_eq!(stage.llm.requests(), 1, "nobody was asked twice");
    process.kill().await.unwrap();
}

#[tokio::test]
async fn without_a_word_in_the_configuration_a_voice_message_is_a_file() {
    let stage = Stage::new("").await;
    let process = stage.start().await;
    stage.speaks("good morning");
    let (method, written) = stage.sends().await;
    assert_eq!((method.as_str(), &written["text"]), ("sendMessage", &json!("Hi there")));
    let told = stage.told();
    assert!(told.contains("you cannot listen to it") && !told.contains("good morning"), "{told}");
    let (_, checked) = run(stage.home.path(), &["config", "check"]).await;
    assert!(!checked.contains("voice"), "{checked}");
    stage.home.write("config.yaml", "voice: {speak: {command: no-such-speaker}}\n").unwrap();
    let (_, checked) = run(stage.home.path(), &["config", "check"]).await;
    assert!(
        checked.contains("voice.speak.command: \"no-such-speaker\" names a program"),
        "{checked}"
    );
    process.kill().await.unwrap();
}

#[tokio::test]
async fn a_picture_goes_to_a_model_that_sees_and_its_name_to_one_that_does_not() {
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    for (provider, seen) in [(", vision: true", true), ("", false)] {
        let stage = Stage::with(provider, "").await;
        let process = stage.start().await;
        let mut update = stage.vendor.said(7, "");
        update["message"]["caption"] = json!("what is this?");
        update["message"]["photo"] = json!([{
            "file_id": "photo-1", "file_unique_id": "p1", "width": 1, "height": 1,
            "file_size": png.len(),
        }]);
        update["message"].as_object_mut().unwrap().shift_remove("text");
        let file = ("photos/1.png".to_owned(), png.clone());
        stage.vendor.truth().files.insert("photo-1".into(), file);
        stage.vendor.push(update);
        assert_eq!(stage.sends().await.0, "sendMessage");
        let told = stage.told();
        assert_eq!(told.contains("data:image/png;base64,iVBORw0KGgo"), seen, "{told}");
        assert_eq!(told.contains("its content cannot be shown to you"), !seen, "{told}");
        assert!(told.contains("what is this?"), "{told}");
        process.kill().await.unwrap();
    }
}
