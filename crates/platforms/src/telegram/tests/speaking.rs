//! Acts against a Telegram that misbehaves.

use talaria_model::{Choice, ChoiceId, Content, MessageId, Progress, Proxy};
use talaria_platform::{MenuItem, Offered, SendError};

use super::super::client::Client;
use super::super::menu;
use super::vendor::{Fault, TOKEN, Truth, refusal};
use super::*;

fn text(text: &str) -> Act {
    Act::Post(Content::text(text))
}

fn with_files(text: &str, files: &[(&str, &str)]) -> Act {
    let files = files.iter().map(|(name, mime)| file(name, mime)).collect();
    Act::Post(Content { files, ..Content::text(text) })
}

fn throttled() -> Fault {
    let body = json!({
        "ok": false, "error_code": 429, "description": "Too Many Requests: retry after 31",
        "parameters": { "retry_after": 31 },
    });
    Fault::Instead(429, body.to_string())
}

#[tokio::test]
async fn a_receipt_names_the_message() {
    let bench = Bench::open().await;
    let receipt = bench.send(&alice(), text("hello")).await.unwrap();
    assert_eq!(receipt.message, Some(MessageId::literal("100")));
    assert_eq!(bench.vendor.truth().messages[&100]["text"], "hello");
}

#[tokio::test]
async fn what_telegram_asks_for_is_handed_on() {
    let bench = Bench::open().await;
    bench.vendor.fault("sendMessage", throttled());
    let sent = bench.send(&alice(), text("hello")).await;
    assert_eq!(sent, Err(SendError::Throttled { after: Duration::from_secs(31) }));
    assert!(bench.vendor.truth().messages.is_empty());
    bench.vendor.fault("sendMessage", refusal(403, "Forbidden: bot was blocked by the user"));
    let sent = bench.send(&alice(), text("hello")).await;
    assert!(matches!(sent, Err(SendError::Gone { .. })), "{sent:?}");
    let unreadable = refusal(400, "Bad Request: entity URL 'x' is invalid: Wrong HTTP URL");
    bench.vendor.fault("sendMessage", unreadable);
    let sent = bench.send(&alice(), text("hello")).await;
    assert!(matches!(sent, Err(SendError::Unreadable { .. })), "{sent:?}");
}

#[tokio::test]
async fn a_post_without_an_answer_may_have_arrived() {
    let bench = Bench::open().await;
    for fault in [Fault::Lost, Fault::BadGateway, Fault::Instead(200, "?".into())] {
        bench.vendor.fault("sendMessage", fault);
        let sent = bench.send(&alice(), text("hello")).await;
        assert!(matches!(sent, Err(SendError::Unconfirmed { .. })), "{sent:?}");
    }
    assert_eq!(bench.vendor.truth().messages.len(), 2, "and sometimes it has");
}

#[tokio::test]
async fn nothing_that_can_be_repeated_is_unsure() {
    let bench = Bench::open().await;
    let message = bench.send(&alice(), text("hello")).await.unwrap().message.unwrap();
    let acts = [
        ("editMessageText", Act::Edit { message: message.clone(), content: Content::text("bye") }),
        ("sendMessageDraft", Act::Draft(Content::text("so far").into())),
        ("sendChatAction", Act::Typing),
        ("setMessageReaction", Act::Mark { message: message.clone(), progress: Progress::Seen }),
        ("deleteMessage", Act::Delete { message }),
    ];
    for (method, act) in acts {
        bench.vendor.fault(method, Fault::Lost);
        let sent = bench.send(&alice(), act.clone()).await;
        assert!(matches!(sent, Err(SendError::Unreachable { .. })), "{method}: {sent:?}");
        let again = bench.send(&alice(), act).await;
        assert!(again.is_ok(), "what is so already is done: {method}: {again:?}");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_has_nothing() {
    let bench = Bench::open().await;
    let Bench { vendor, outgoing, .. } = bench;
    drop(vendor);
    tokio::task::yield_now().await;
    let sent = outgoing.send(&outbound(&alice(), 1, text("hello"))).await;
    assert!(
        matches!(sent, Err(SendError::Unreachable { .. } | SendError::Unconfirmed { .. })),
        "{sent:?}"
    );
}

#[tokio::test]
async fn telegram_opens_no_link_by_itself_unless_it_is_told_to() {
    let links = "see ![it](https://evil.example/?q=secret)";
    let hidden = json!({ "is_disabled": true });
    for (told, expected) in [(None, &hidden), (Some(false), &Value::Null)] {
        let vendor = Vendor::open().await;
        let mut settings = vendor.settings();
        if let Some(told) = told {
            settings["disable_link_previews"] = told.into();
        }
        let bench = Bench::connect(vendor, settings, None).await;
        let message = bench.send(&alice(), text(links)).await.unwrap().message.unwrap();
        assert_eq!(&bench.last("sendMessage")["link_preview_options"], expected);
        let edit = Act::Edit { message, content: Content::text(links) };
        bench.send(&alice(), edit).await.unwrap();
        assert_eq!(&bench.last("editMessageText")["link_preview_options"], expected);
    }
}

#[tokio::test]
async fn files_are_uploaded_with_their_names_and_bytes() {
    let bench = Bench::open().await;
    let content = with_files("**look**", &[("notes.pdf", "application/pdf")]);
    bench.send(&alice(), content).await.unwrap();
    let asked = bench.last("sendDocument");
    let uploaded = json!({ "file": "notes.pdf", "mime": "application/pdf", "bytes": "notes.pdf" });
    assert_eq!(asked["document"], uploaded);
    assert_eq!((&asked["chat_id"], &asked["caption"]), (&json!(250_918_540), &json!("look")));
    let entities: Value =
        serde_json::from_str(asked["caption_entities"].as_str().unwrap()).unwrap();
    assert_eq!(entities, json!([{ "type": "bold", "offset": 0, "length": 4 }]));
    let album = with_files("", &[("a.png", "image/png"), ("b.png", "image/png")]);
    let receipt = bench.send(&alice(), album).await.unwrap();
    assert_eq!(receipt.message, Some(MessageId::literal("101")), "an album is known by its first");
    let asked = bench.last("sendMediaGroup");
    assert_eq!(
        (&asked["file0"]["file"], &asked["file1"]["file"]),
        (&json!("a.png"), &json!("b.png"))
    );
}

#[tokio::test]
async fn a_picture_that_is_none_for_telegram_travels_as_a_file() {
    let bench = Bench::open().await;
    bench.vendor.fault("sendPhoto", refusal(400, "Bad Request: PHOTO_INVALID_DIMENSIONS"));
    let mut act = with_files("Which?", &[("long.png", "image/png")]);
    if let Act::Post(content) = &mut act {
        content.choices = vec![Choice { id: ChoiceId::literal("q1"), label: "This".into() }];
    }
    bench.send(&alice(), act).await.unwrap();
    let asked = bench.last("sendDocument");
    assert_eq!(
        (&asked["document"]["file"], &asked["caption"]),
        (&json!("long.png"), &json!("Which?"))
    );
    assert!(asked["reply_markup"].as_str().unwrap().contains("q1"));
}

#[tokio::test]
async fn a_file_that_is_no_longer_kept_is_named() {
    let bench = Bench::open().await;
    let act = with_files("Here:", &[("lost_notes.txt", "text/plain"), ("b.txt", "text/plain")]);
    bench.send(&alice(), act).await.unwrap();
    assert_eq!(bench.last("sendDocument")["caption"], "Here:\n\n(no longer kept: lost_notes.txt)");
}

#[tokio::test]
async fn a_file_that_cannot_be_read_was_not_sent() {
    let bench = Bench::open().await;
    let sent = bench.send(&alice(), with_files("", &[("broken.txt", "text/plain")])).await;
    assert!(matches!(sent, Err(SendError::Unreachable { .. })), "{sent:?}");
}

#[tokio::test]
async fn a_post_of_several_requests_goes_on_where_it_was_stopped() {
    let bench = Bench::open().await;
    let long = "word ".repeat(300);
    let act = with_files(&long, &[("a.txt", "text/plain"), ("b.ogg", "audio/ogg")]);
    bench.vendor.fault("sendVoice", throttled());
    let sent = bench.send(&alice(), act.clone()).await;
    assert!(matches!(sent, Err(SendError::Throttled { .. })), "{sent:?}");
    let receipt = bench.send(&alice(), act).await.unwrap();
    assert_eq!(receipt.message, Some(MessageId::literal("100")), "it is known by its text");
    let counts =
        ["sendMessage", "sendDocument", "sendVoice"].map(|it| bench.vendor.asked(it).len());
    assert_eq!(counts, [1, 1, 2], "nothing that arrived is said again");
}

#[tokio::test]
async fn a_post_whose_outcome_is_unknown_is_repeated_whole() {
    let bench = Bench::open().await;
    let long = "word ".repeat(300);
    let act = with_files(&long, &[("a.txt", "text/plain")]);
    bench.vendor.fault("sendDocument", Fault::Lost);
    let sent = bench.send(&alice(), act).await;
    assert!(matches!(sent, Err(SendError::Unconfirmed { .. })), "{sent:?}");
    let marked = with_files(&format!("(again)\n{long}"), &[("a.txt", "text/plain")]);
    bench.send(&alice(), marked).await.unwrap();
    assert_eq!(bench.vendor.asked("sendMessage").len(), 2, "the mark is seen");
}

#[tokio::test]
async fn part_of_an_album_may_have_arrived() {
    let bench = Bench::open().await;
    let words = "Bad Request: Failed to send message #2 with the error message \"Wrong file\"";
    bench.vendor.fault("sendMediaGroup", refusal(400, words));
    let album = with_files("", &[("a.png", "image/png"), ("b.png", "image/png")]);
    let sent = bench.send(&alice(), album).await;
    assert!(matches!(sent, Err(SendError::Unconfirmed { .. })), "{sent:?}");
}

#[tokio::test]
async fn a_group_that_has_moved_is_followed() {
    let bench = Bench::open().await;
    let group = address("-599075523", ChatKind::Group, None);
    bench.vendor.truth().moved.insert(-599_075_523, -1_001_555_296_434);
    bench.send(&group, text("hello")).await.unwrap();
    bench.send(&group, text("again")).await.unwrap();
    let chats: Vec<Value> =
        bench.vendor.asked("sendMessage").iter().map(|asked| asked["chat_id"].clone()).collect();
    let there = -1_001_555_296_434_i64;
    assert_eq!(json!(chats), json!([-599_075_523, there, there]), "and remembered");
}

#[tokio::test]
async fn the_text_below_a_file_can_be_changed() {
    let bench = Bench::open().await;
    let sent = bench.send(&alice(), with_files("Which?", &[("a.txt", "text/plain")])).await;
    let message = sent.unwrap().message.unwrap();
    let edit = Act::Edit { message, content: Content::text("This one.") };
    bench.send(&alice(), edit).await.unwrap();
    assert_eq!(bench.last("editMessageCaption")["caption"], "This one.");
}

#[tokio::test]
async fn a_mark_replaces_the_one_before() {
    let bench = Bench::open().await;
    let message = MessageId::literal("7");
    for (progress, shown) in [
        (Progress::Seen, json!([{ "type": "emoji", "emoji": "👀" }])),
        (Progress::Done, json!([{ "type": "emoji", "emoji": "👍" }])),
        (Progress::Nothing, json!([])),
    ] {
        let mark = Act::Mark { message: message.clone(), progress };
        bench.send(&alice(), mark).await.unwrap();
        assert_eq!(bench.vendor.truth().reactions[&7], shown);
    }
}

#[tokio::test]
async fn no_error_shows_the_token() {
    let vendor = Vendor::open().await;
    let mut with = vendor.settings();
    with["base_file_url"] = json!("http://127.0.0.1:1");
    let bench = Bench::connect(vendor, with, None).await;
    bench.vendor.truth().files.insert("f".into(), ("documents/a".into(), vec![]));
    let media = talaria_model::Media {
        handle: "f".into(),
        kind: talaria_model::MediaKind::Document,
        name: None,
        mime: None,
        size: None,
        owner: talaria_model::Owner::default(),
    };
    let Err(error) = bench.library.fetch(&media).await else { panic!("nothing listens there") };
    let shown = format!("{error} {error:?}");
    assert!(!shown.contains(TOKEN) && !shown.contains("AAHdq"), "{shown}");
    bench.vendor.fault("sendMessage", Fault::Lost);
    let Err(error) = bench.send(&alice(), text("hello")).await else { panic!("it is lost") };
    let shown = format!("{error} {error:?}");
    assert!(!shown.contains("AAHdq"), "{shown}");
}

fn command(name: &str) -> MenuItem {
    MenuItem {
        name: name.into(),
        aliases: Vec::new(),
        arguments: String::new(),
        help: "Does it.".into(),
        to: Offered::Everyone,
    }
}

#[tokio::test]
async fn the_menu_is_set_while_somebody_listens() {
    let vendor = Vendor::open().await;
    let folder = TempDir::new().unwrap();
    let menu = vec![command("new")].into();
    let lent = Ports { menu, ..ports(folder.path(), None) };
    let link = Telegram::connect(settings(vendor.settings()), lent).await.unwrap();
    let Incoming::Stream(mut arrivals) = link.incoming else { panic!("it polls") };
    let is_set = |truth: &Truth| {
        let set = truth.requests.iter().filter(|asked| asked.method == "setMyCommands");
        set.count() == 3
    };
    tokio::select! {
        () = vendor.until(is_set) => {}
        _ = arrivals.next() => panic!("nothing was said"),
    }
    assert_eq!(vendor.asked("setMyCommands")[0]["commands"][0]["command"], "new");
}

#[tokio::test]
async fn the_menu_is_set_when_it_has_changed() {
    let vendor = Vendor::open().await;
    let folder = TempDir::new().unwrap();
    let token = talaria_model::Secret::new(TOKEN);
    let url = vendor.url.parse().unwrap();
    let client = Arc::new(Client::new(&url, &url, token, 42, &Proxy::None).unwrap());
    let publish = |commands: Vec<MenuItem>| {
        let (client, folder) = (client.clone(), folder.path().to_owned());
        async move { menu::publish(client, &folder, &commands).await }
    };
    let set = || vendor.asked("setMyCommands").len();
    publish(vec![command("new"), command("reload-mcp")]).await;
    assert_eq!(set(), 3, "in each scope");
    assert_eq!(
        vendor.asked("setMyCommands")[2],
        json!({
            "commands": [
                { "command": "new", "description": "Does it." },
                { "command": "reload_mcp", "description": "Does it." },
            ],
            "scope": { "type": "default" },
        })
    );
    publish(vec![command("new"), command("reload-mcp")]).await;
    assert_eq!(set(), 3, "it is there already");
    vendor.fault("setMyCommands", refusal(400, "Bad Request: BOT_COMMANDS_TOO_MUCH"));
    publish(vec![command("new")]).await;
    assert_eq!(set(), 4, "a refusal ends it");
    publish(vec![command("new")]).await;
    assert_eq!(set(), 7, "and it is tried again the next time");
}
