//! Acts out: what is asked of Telegram, to the letter.

use talaria_model::{
    Choice, ChoiceId, Content, Draft, MessageId, Notify, Progress, Reading, Shown,
};
use talaria_platform::SendError;

use super::super::encode::{self, Done, LinkPreviews, Request};
use super::*;

fn content(text: &str) -> Content {
    Content::text(text)
}

#[test]
fn text_that_is_to_be_read_as_it_is_has_no_entities() {
    let plain = Content { reading: Reading::AsItIs, ..content("# a*b*c\n```\n`d` __e__") };
    for said in post(&alice(), &plain) {
        assert_eq!(said["text"], "# a*b*c\n```\n`d` __e__");
        assert!(said.get("entities").is_none(), "{said}");
    }
    let message = MessageId::literal("7");
    let edit = encode::edit(&json!(42), &message, &plain, LinkPreviews::Shown).unwrap();
    assert_eq!(edit.body["text"], "# a*b*c\n```\n`d` __e__");
    assert!(edit.body.get("entities").is_none());
}

fn choice(id: &'static str, label: &str) -> Choice {
    Choice { id: ChoiceId::literal(id), label: label.into() }
}

fn plan(to: &Address, content: &Content, done: &Done) -> Vec<Request> {
    let chat = encode::chat(to).unwrap();
    let steps = encode::post(to, &chat, content, done, LinkPreviews::Shown).unwrap();
    steps.into_iter().map(|step| step.request).collect()
}

fn post(to: &Address, content: &Content) -> Vec<Value> {
    let requests = plan(to, content, &Done::default());
    requests.into_iter().map(|request| body_of(&request)).collect()
}

/// A request with its method and the names of its files.
fn body_of(request: &Request) -> Value {
    let mut body = json!(request.body);
    body["method"] = json!(request.method);
    if !request.files.is_empty() {
        let names = request.files.iter().map(|(field, file)| format!("{field}={}", file.name));
        body["files"] = names.collect();
    }
    body
}

fn check(to: &Address, content: &Content, expected: Value) {
    assert_eq!(json!(post(to, content)), expected);
}

#[test]
fn text_goes_to_its_chat_and_topic() {
    let said = |place: Value| {
        let mut body = json!({ "method": "sendMessage", "text": "hi" });
        body.as_object_mut().unwrap().extend(place.as_object().unwrap().clone());
        json!([body])
    };
    let hi = content("hi");
    check(&alice(), &hi, said(json!({ "chat_id": 250_918_540 })));
    let topic = address("250918540", ChatKind::Dm, Some("77"));
    check(&topic, &hi, said(json!({ "chat_id": 250_918_540, "message_thread_id": 77 })));
    let forum = address("-1001847508954", ChatKind::Forum, Some("4"));
    check(&forum, &hi, said(json!({ "chat_id": -1_001_847_508_954_i64, "message_thread_id": 4 })));
    for general in [None, Some("1")] {
        let forum = address("-1001847508954", ChatKind::Forum, general);
        check(&forum, &hi, said(json!({ "chat_id": -1_001_847_508_954_i64 })));
    }
    let direct = address("-2002147483999", ChatKind::Group, Some("9"));
    let place = json!({ "chat_id": -2_002_147_483_999_i64, "direct_messages_topic_id": 9 });
    check(&direct, &hi, said(place));
    check(
        &address("@channel", ChatKind::Channel, None),
        &hi,
        said(json!({ "chat_id": "@channel" })),
    );
}

#[test]
fn what_is_no_place_is_refused_before_anything_leaves() {
    for (chat, thread) in [("home", None), ("1", Some("lunch"))] {
        let to = address(chat, ChatKind::Dm, thread);
        let planned = encode::chat(&to).and_then(|chat| {
            encode::post(&to, &chat, &content("hi"), &Done::default(), LinkPreviews::Shown)
        });
        assert!(matches!(planned, Err(SendError::Rejected { .. })), "{planned:?}");
    }
    let nothing = content(" \n ");
    let planned =
        encode::post(&alice(), &json!(1), &nothing, &Done::default(), LinkPreviews::Shown);
    assert!(matches!(planned, Err(SendError::Rejected { .. })), "{planned:?}");
}

#[test]
fn entities_replies_silence_and_buttons_go_along() {
    let asked = Content {
        choices: vec![choice("q1", "Yes"), choice("q2", "No"), choice("q3", "Later")],
        reply_to: Some(MessageId::literal("12")),
        notify: Notify::Silently,
        ..content("**Which**?")
    };
    check(
        &alice(),
        &asked,
        json!([{
            "method": "sendMessage",
            "chat_id": 250_918_540,
            "disable_notification": true,
            "text": "Which?",
            "entities": [{ "type": "bold", "offset": 0, "length": 5 }],
            "reply_markup": { "inline_keyboard": [
                [{ "text": "Yes", "callback_data": "q1" }, { "text": "No", "callback_data": "q2" }],
                [{ "text": "Later", "callback_data": "q3" }],
            ]},
            "reply_parameters": { "message_id": 12, "allow_sending_without_reply": true },
        }]),
    );
    let hidden =
        encode::post(&alice(), &json!(1), &content("hi"), &Done::default(), LinkPreviews::Hidden);
    let body = &hidden.unwrap()[0].request.body;
    assert_eq!(body["link_preview_options"], json!({ "is_disabled": true }));
}

#[test]
fn a_question_without_words_gets_some() {
    let asked = Content { choices: vec![choice("q1", "Yes")], ..Content::default() };
    assert_eq!(post(&alice(), &asked)[0]["text"], "Please choose:");
}

/// Each request as its method, its files and its text.
fn outline(content: &Content, done: &Done) -> Vec<String> {
    let requests = plan(&alice(), content, done);
    let outline = requests.iter().map(|request| {
        let body = body_of(request);
        let album = &body["media"][0]["caption"];
        let text = [&body["text"], &body["caption"], album].into_iter().find_map(Value::as_str);
        let text = text.map(|text| format!("{:?}", &text[..text.len().min(8)]));
        let files: Vec<&str> = request.files.iter().map(|(_, file)| file.name.as_str()).collect();
        let files = (!files.is_empty()).then(|| files.join(","));
        let buttons = body.get("reply_markup").map(|_| "buttons".to_owned());
        let words = [Some(request.method.to_owned()), text, files, buttons];
        words.into_iter().flatten().collect::<Vec<_>>().join(" ")
    });
    outline.collect()
}

fn with_files(text: &str, files: &[(&str, &str)]) -> Content {
    let files = files.iter().map(|(name, mime)| file(name, mime)).collect();
    Content { files, ..content(text) }
}

#[test]
fn each_file_is_sent_as_what_it_is() {
    for (mime, method) in [
        ("image/png", "sendPhoto"),
        ("image/svg+xml", "sendDocument"),
        ("image/gif", "sendAnimation"),
        ("video/mp4", "sendVideo"),
        ("audio/ogg", "sendVoice"),
        ("audio/mpeg", "sendAudio"),
        ("application/pdf", "sendDocument"),
    ] {
        let content = with_files("look", &[("f", mime)]);
        assert_eq!(outline(&content, &Done::default()), [format!("{method} \"look\" f")], "{mime}");
    }
    for (shown, mime, method) in [
        (Shown::Voice, "audio/ogg", "sendVoice"),
        (Shown::Voice, "audio/mpeg", "sendVoice"),
        (Shown::Voice, "audio/wav", "sendDocument"),
        (Shown::Document, "image/png", "sendDocument"),
        (Shown::Document, "audio/ogg", "sendDocument"),
    ] {
        let mut wished = with_files("", &[("f", mime)]);
        wished.files[0].shown = shown;
        assert_eq!(outline(&wished, &Done::default()), [format!("{method} f")], "{shown:?} {mime}");
    }
    let mut large = with_files("", &[("f", "image/png")]);
    large.files[0].size = 11 * 1024 * 1024;
    assert_eq!(outline(&large, &Done::default()), ["sendDocument f"]);
}

#[test]
fn files_that_go_together_are_an_album() {
    let mixed = with_files(
        "look",
        &[
            ("a", "image/png"),
            ("b", "video/mp4"),
            ("c", "image/jpeg"),
            ("d", "text/plain"),
            ("e", "application/pdf"),
            ("f", "audio/ogg"),
            ("g", "audio/ogg"),
            ("h", "audio/mpeg"),
        ],
    );
    assert_eq!(
        outline(&mixed, &Done::default()),
        [
            "sendMediaGroup \"look\" a,b,c",
            "sendMediaGroup d,e",
            "sendVoice f",
            "sendVoice g",
            "sendAudio h",
        ]
    );
    let many: Vec<(String, &str)> = (0..12).map(|n| (format!("p{n}"), "image/png")).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(name, mime)| (name.as_str(), *mime)).collect();
    assert_eq!(
        outline(&with_files("", &many), &Done::default()),
        ["sendMediaGroup p0,p1,p2,p3,p4,p5,p6,p7,p8,p9", "sendMediaGroup p10,p11",]
    );
}

#[test]
fn an_album_names_its_files() {
    let album = with_files("**look**", &[("a", "image/png"), ("b", "image/png")]);
    check(
        &alice(),
        &album,
        json!([{
            "method": "sendMediaGroup",
            "chat_id": 250_918_540,
            "media": [
                { "type": "photo", "media": "attach://file0", "caption": "look",
                  "caption_entities": [{ "type": "bold", "offset": 0, "length": 4 }] },
                { "type": "photo", "media": "attach://file1" },
            ],
            "files": ["file0=a", "file1=b"],
        }]),
    );
}

#[test]
fn a_text_that_is_no_caption_is_a_message() {
    let long = with_files(&"word ".repeat(300), &[("a", "image/png")]);
    assert_eq!(outline(&long, &Done::default()), ["sendMessage \"word wor\"", "sendPhoto a"]);
    // People press what they see last.
    let mut asked = with_files("Which?", &[("a", "image/png"), ("b", "image/png")]);
    asked.choices = vec![choice("q1", "Yes")];
    assert_eq!(
        outline(&asked, &Done::default()),
        ["sendMediaGroup a,b", "sendMessage \"Which?\" buttons"]
    );
    asked.files.truncate(1);
    assert_eq!(outline(&asked, &Done::default()), ["sendPhoto \"Which?\" a buttons"]);
}

#[test]
fn a_post_that_was_begun_goes_on_where_it_stopped() {
    let content = with_files("look", &[("a", "image/png"), ("b", "text/plain")]);
    let done = Done { said: true, files: 1, message: None };
    assert_eq!(outline(&content, &done), ["sendDocument b"]);
    let unsaid = Done { said: false, files: 1, message: None };
    assert_eq!(outline(&content, &unsaid), ["sendMessage \"look\"", "sendDocument b"]);
    let all = Done { said: true, files: 2, message: None };
    assert!(outline(&content, &all).is_empty());
}

#[test]
fn the_other_acts_are_one_request_each() {
    let chat = json!(7);
    let message = MessageId::literal("12");
    let body = |request: Result<Request, SendError>| body_of(&request.unwrap());
    assert_eq!(
        body(encode::edit(&chat, &message, &content("*new*"), LinkPreviews::Shown)),
        json!({
            "method": "editMessageText", "chat_id": 7, "message_id": 12, "text": "new",
            "entities": [{ "type": "italic", "offset": 0, "length": 3 }],
        })
    );
    assert_eq!(
        body(encode::delete(&chat, &message)),
        json!({ "method": "deleteMessage", "chat_id": 7, "message_id": 12 })
    );
    let react = |emoji| body(encode::react(&chat, &message, emoji));
    let reaction = |emoji: &str| {
        json!({
            "method": "setMessageReaction", "chat_id": 7, "message_id": 12,
            "reaction": [{ "type": "emoji", "emoji": emoji }],
        })
    };
    assert_eq!(react("👀"), reaction("👀"));
    assert_eq!(react("❤\u{fe0f}"), reaction("❤"), "Telegram knows it without the variation sign");
    assert_eq!(react("✅"), reaction("👍"), "the nearest that there is");
    assert_eq!(react("❌"), reaction("👎"));
    assert!(encode::react(&chat, &message, "🥑").is_err(), "there is no such reaction");
    let mark = |progress| body(encode::mark(&chat, &message, progress))["reaction"].clone();
    assert_eq!(mark(Progress::Seen)[0]["emoji"], "👀");
    assert_eq!(mark(Progress::Done)[0]["emoji"], "👍");
    assert_eq!(mark(Progress::Failed)[0]["emoji"], "👎");
    assert_eq!(mark(Progress::Nothing), json!([]));
}

#[test]
fn typing_is_seen_in_the_topic_it_is_for() {
    let typing = |to: &Address| encode::typing(to, &encode::chat(to).unwrap());
    let thread = |to: &Address| json!(typing(to).unwrap().body)["message_thread_id"].clone();
    assert_eq!(thread(&alice()), Value::Null);
    assert_eq!(thread(&address("-1001", ChatKind::Forum, Some("4"))), 4);
    assert_eq!(thread(&address("-1001", ChatKind::Forum, None)), 1, "“General” has to be named");
    assert!(typing(&address("-2002147483999", ChatKind::Group, Some("9"))).is_err());
}

#[test]
fn a_draft_says_what_is_there_and_what_is_going_on() {
    let id = outbound(&alice(), 3, Act::Typing).id;
    let draft = |draft: &Draft| body_of(&encode::draft(&alice(), &json!(7), &id, draft).unwrap());
    assert_eq!(
        draft(&content("**once**").into()),
        json!({
            "method": "sendMessageDraft", "chat_id": 7, "draft_id": 4, "can_stop": true,
            "text": "once", "entities": [{ "type": "bold", "offset": 0, "length": 4 }],
        })
    );
    let doing = Some("searching".to_owned());
    let at_work = draft(&Draft { content: content("once"), doing });
    assert_eq!(at_work["text"], "once\n\nsearching…");
    assert_eq!(draft(&Draft::default())["text"], "", "Telegram shows that somebody thinks");
}
