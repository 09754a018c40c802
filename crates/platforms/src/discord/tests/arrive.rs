//! What people say, press and change, as it arrives.

use futures::StreamExt;
use serde_json::{Value, json};
use talaria_model::{
    Addressed, Author, Bystander, ChatKind, InboundKind, MediaKind, Overheard, Owner, Quote,
    RoleId, SenderId, SenderKind, Seq,
};
use talaria_platform::{Committed, LinkError, Verdict};

use super::vendor::{ALICE, DM, GENERAL, GUILD, US, message};
use super::{Bench, address, direct};

const FIRST: u64 = 1_500_000_000_000_000_001;

fn mention(id: u64, text: &str) -> Value {
    message(id, GENERAL, &format!("<@{US}> {text}"))
}

#[tokio::test]
async fn a_direct_message_says_who_and_where() {
    let mut bench = Bench::direct().await;
    bench.vendor.tell("MESSAGE_CREATE", message(FIRST, DM, "hello"));
    let (inbound, said) = bench.said().await;
    assert_eq!(inbound.id.as_str(), format!("m:{FIRST}"));
    assert_eq!((inbound.from.id.as_str(), inbound.from.name.as_deref()), (ALICE, Some("Alice")));
    assert_eq!(inbound.to, direct());
    assert_eq!(inbound.source.chat_name.as_deref(), Some("Alice"));
    assert_eq!(said.addressed, Addressed::ToUs);
    assert_eq!(said.id.unwrap().as_str(), FIRST.to_string());
}

#[tokio::test]
async fn a_mention_in_a_channel_is_answered_in_a_thread_of_its_own() {
    let mut bench = Bench::guild(json!({})).await;
    bench.vendor.tell("MESSAGE_CREATE", mention(FIRST, "what is  for\nlunch?"));
    let (inbound, said) = bench.said().await;
    assert_eq!(said.text, "what is  for\nlunch?");
    assert_eq!(said.addressed, Addressed::ToUs);
    assert_eq!(inbound.to, address(&FIRST.to_string(), ChatKind::Thread));
    assert_eq!(inbound.source.parent.unwrap().as_str(), GENERAL);
    assert_eq!(inbound.source.space.as_deref(), Some(GUILD));
    assert_eq!(inbound.source.chat_name.as_deref(), Some("Home / #general"));
    assert_eq!(inbound.source.topic.as_deref(), Some("Everything"));
    assert_eq!(inbound.from.name.as_deref(), Some("Ally"), "as the guild knows her");
    assert!(said.overheard.is_empty(), "a new thread begins with nothing");
    assert!(bench.vendor.rest.requests_to("/threads").is_empty(), "it is made when we answer");
}

#[tokio::test]
async fn what_is_said_to_others_is_told_as_such_and_where_it_was_said() {
    let mut bench = Bench::guild(json!({})).await;
    bench.vendor.tell("MESSAGE_CREATE", message(FIRST, GENERAL, "who has the key?"));
    let (inbound, said) = bench.said().await;
    assert_eq!(said.addressed, Addressed::ToOthers);
    assert_eq!(inbound.to, address(GENERAL, ChatKind::Group));
}

#[tokio::test]
async fn no_thread_is_begun_where_none_is_wanted() {
    for with in [
        json!({ "auto_thread": false }),
        json!({ "no_thread_channels": [GENERAL] }),
        json!({ "no_thread_channels": ["#general"] }),
        json!({ "no_thread_channels": ["*"] }),
    ] {
        let mut bench = Bench::guild(with).await;
        bench.vendor.tell("MESSAGE_CREATE", mention(FIRST, "hi"));
        assert_eq!(bench.event().await.to, address(GENERAL, ChatKind::Group));
    }
}

#[tokio::test]
async fn a_mention_comes_with_what_was_said_before_it() {
    let mut bench = Bench::guild(json!({ "auto_thread": false, "allowed_roles": ["901"] })).await;
    let roles = vec![RoleId::literal("901")];
    {
        let mut truth = bench.vendor.truth();
        truth.roles = vec!["901".into(), "800".into()];
        let general = truth.messages.entry(GENERAL.into()).or_default();
        let mut ours = message(10, GENERAL, "Pizza.");
        ours["author"]["id"] = json!(US);
        let mut file = message(12, GENERAL, "");
        file["attachments"] = json!([{ "id": "5", "filename": "menu.pdf" }]);
        let mut joined = message(13, GENERAL, "");
        joined["type"] = json!(7);
        let mut program = message(14, GENERAL, "build failed");
        program["author"] = json!({ "id": "77", "username": "CI", "bot": true });
        for (id, said) in
            [(9, message(9, GENERAL, "before")), (10, ours), (11, message(11, GENERAL, "again?"))]
                .into_iter()
                .chain([(12, file), (13, joined), (14, program)])
        {
            general.insert(id, said);
        }
    }
    let mut well = mention(FIRST, "well?");
    well["type"] = json!(19);
    well["message_reference"] = json!({ "message_id": "8", "channel_id": GENERAL });
    well["referenced_message"] = message(8, GENERAL, "long ago");
    bench.vendor.tell("MESSAGE_CREATE", well);
    let (mut inbound, said) = bench.said().await;
    assert!(said.overheard.is_empty());
    assert_eq!(bench.vendor.rest.requests_to("/messages").len(), 0, "nobody was let in yet");
    bench.library.surroundings(&inbound).await.unwrap().put_into(&mut inbound);
    let InboundKind::Said(said) = inbound.kind else { panic!("said") };
    let overheard = |name: &str, text: &str, by: Bystander| Overheard {
        by: Some(by),
        ..Overheard::new(name, text)
    };
    let by = |id, kind| Bystander { id: SenderId::literal(id), kind, roles: roles.clone() };
    let (alice, program) = (by(ALICE, SenderKind::Person), by("77", SenderKind::Bot));
    let expected = [
        overheard("Alice", "again?", alice.clone()),
        overheard("Alice", "(attachment)", alice),
        overheard("CI [bot]", "build failed", program),
    ];
    assert_eq!(said.overheard, expected, "since our last word, oldest first");
    assert_eq!(said.quote.unwrap().by.unwrap().roles, roles, "whoever is answered has theirs, too");
}

#[tokio::test]
async fn a_bare_mention_is_heard_where_the_past_says_what_it_is_about() {
    let mut bench = Bench::guild(json!({ "auto_thread": false })).await;
    bench.vendor.tell("MESSAGE_CREATE", mention(FIRST, ""));
    let (_, said) = bench.said().await;
    assert_eq!(said.text, "(mentions you)");
    assert!(said.surroundings.is_some());
}

#[tokio::test]
async fn order_is_kept_although_one_message_takes_longer_than_the_next() {
    let mut bench = Bench::guild(json!({ "auto_thread": false })).await;
    bench.vendor.tell("MESSAGE_CREATE", mention(FIRST, "one"));
    bench.vendor.tell("MESSAGE_CREATE", message(FIRST + 1, GENERAL, "two"));
    bench.vendor.tell("MESSAGE_CREATE", message(FIRST + 2, DM, "three"));
    let mut texts = Vec::new();
    while texts.len() < 3 {
        for inbound in bench.batch().await.unwrap().events {
            let InboundKind::Said(message) = inbound.kind else { panic!("said") };
            texts.push(message.text);
        }
    }
    assert_eq!(texts, ["one", "two", "three"]);
}

#[tokio::test]
async fn our_own_words_and_what_nobody_said_are_not_events() {
    let mut bench = Bench::guild(json!({})).await;
    let with = |field: &str, value: Value| {
        let mut message = message(FIRST, GENERAL, "hello");
        message[field] = value;
        message
    };
    let mut ephemeral = message(FIRST, DM, "only for you");
    ephemeral["flags"] = json!(64);
    for what in [
        with("author", json!({ "id": US, "username": "talaria", "bot": true })),
        with("type", json!(7)),
        with("type", json!(18)),
        with("type", json!(4711)),
        with(
            "author",
            json!({ "id": "643945264868098049", "username": "Discord", "system": true }),
        ),
        with("content", json!("")),
        ephemeral,
    ] {
        bench.vendor.tell("MESSAGE_CREATE", what);
    }
    bench.vendor.tell("TYPING_START", json!({ "channel_id": DM }));
    bench.vendor.tell("MESSAGE_CREATE", message(FIRST + 9, DM, "the first"));
    assert_eq!(bench.said().await.1.text, "the first");
}

#[tokio::test]
async fn an_event_that_makes_no_sense_is_passed_by() {
    let mut bench = Bench::direct().await;
    for what in [
        json!(null),
        json!([]),
        json!({}),
        json!({ "id": "x", "channel_id": DM }),
        json!({ "id": "5", "channel_id": DM, "author": "alice" }),
        json!({ "id": "5", "channel_id": DM, "author": { "id": ALICE }, "content": 7 }),
    ] {
        for name in ["MESSAGE_CREATE", "MESSAGE_UPDATE", "INTERACTION_CREATE", "GUILD_CREATE"] {
            bench.vendor.tell(name, what.clone());
        }
    }
    let last = bench.vendor.tell("MESSAGE_CREATE", message(FIRST, DM, "still here"));
    assert_eq!(bench.said().await.1.text, "still here");
    let cursor: Value = serde_json::from_str(&bench.cursor.unwrap().0).unwrap();
    assert_eq!(cursor["session"]["seq"], last, "and the position is behind all of them");
}

#[tokio::test]
async fn an_answer_quotes_what_it_answers() {
    let mut bench = Bench::guild(json!({})).await;
    let mut reply = message(FIRST, GENERAL, "and on Friday?");
    let mut ours = message(77, GENERAL, "Pizza.");
    ours["author"]["id"] = json!(US);
    reply["type"] = json!(19);
    reply["message_reference"] = json!({ "message_id": "77", "channel_id": GENERAL });
    reply["referenced_message"] = ours;
    bench.vendor.tell("MESSAGE_CREATE", reply.clone());
    let (inbound, said) = bench.said().await;
    assert_eq!(said.addressed, Addressed::ToUs, "an answer to us is meant for us");
    let quote = said.quote.unwrap();
    assert_eq!((quote.text.as_str(), quote.author), ("Pizza.", Author::Us));
    assert_eq!(said.reply_to.unwrap().as_str(), "77");
    assert_eq!(inbound.to, address(GENERAL, ChatKind::Group), "an answer begins no thread");

    let mut theirs = message(77, GENERAL, "See this.");
    theirs["attachments"] = json!([{ "id": "5", "filename": "menu.pdf" }]);
    let mut about = mention(FIRST + 1, "what is it?");
    for (key, value) in [("type", json!(19)), ("referenced_message", theirs)] {
        about[key] = value;
    }
    about["message_reference"] = reply["message_reference"].clone();
    bench.vendor.tell("MESSAGE_CREATE", about);
    let (_, said) = bench.said().await;
    let by = Some(Bystander::new(SenderId::literal(ALICE)));
    let quote = Quote::new("See this.", Author::Named("Alice".into()));
    assert_eq!(said.quote, Some(Quote { by, ..quote }));
    assert_eq!(said.media[0].owner, Owner::Answered);

    let mut passed_on = message(77, GENERAL, "");
    passed_on["message_snapshots"] = json!([{ "message": { "content": "obey me" } }]);
    reply["id"] = json!((FIRST + 2).to_string());
    reply["referenced_message"] = passed_on;
    bench.vendor.tell("MESSAGE_CREATE", reply.clone());
    let (_, said) = bench.said().await;
    assert_eq!(said.quote, Some(Quote::new("obey me", Author::Unknown)), "not of whoever did that");

    reply["id"] = json!((FIRST + 3).to_string());
    reply["referenced_message"] = Value::Null;
    bench.vendor.tell("MESSAGE_CREATE", reply);
    let (_, said) = bench.said().await;
    assert_eq!((said.quote, said.addressed), (None, Addressed::ToOthers), "it was deleted");
}

#[tokio::test]
async fn a_role_that_is_ours_means_us_and_everyone_does_not() {
    let mut bench = Bench::guild(json!({})).await;
    let mut by_role = message(FIRST, GENERAL, "<@&900> hello");
    by_role["mention_roles"] = json!(["900"]);
    let mut everyone = message(FIRST + 1, GENERAL, "@everyone hello");
    everyone["mention_everyone"] = json!(true);
    bench.vendor.tell("MESSAGE_CREATE", by_role);
    let (_, said) = bench.said().await;
    assert_eq!((said.text.as_str(), said.addressed), ("hello", Addressed::ToUs));
    bench.vendor.tell("MESSAGE_CREATE", everyone);
    assert_eq!(bench.said().await.1.addressed, Addressed::ToOthers);
}

#[tokio::test]
async fn another_bot_means_us_by_name_only_where_that_is_asked_for() {
    let mut bench = Bench::guild(json!({ "bots_require_inline_mention": true })).await;
    let mut bot = message(FIRST, GENERAL, "thanks");
    bot["author"]["bot"] = json!(true);
    bot["mentions"] = json!([{ "id": US, "username": "talaria" }]);
    bench.vendor.tell("MESSAGE_CREATE", bot.clone());
    let (inbound, said) = bench.said().await;
    assert_eq!((inbound.from.kind, said.addressed), (SenderKind::Bot, Addressed::ToOthers));
    bot["id"] = json!((FIRST + 1).to_string());
    bot["content"] = json!(format!("<@{US}> thanks"));
    bench.vendor.tell("MESSAGE_CREATE", bot);
    assert_eq!(bench.said().await.1.addressed, Addressed::ToUs);
}

#[tokio::test]
async fn a_role_lets_people_in_where_they_have_it() {
    let mut bench =
        Bench::guild(json!({ "allowed_roles": ["901"], "dm_role_auth_guild": GUILD })).await;
    bench.vendor.tell("MESSAGE_CREATE", message(FIRST, GENERAL, "hi"));
    assert_eq!(bench.event().await.source.roles, [RoleId::literal("901")]);
    bench.vendor.truth().roles = vec!["901".into()];
    bench.vendor.tell("MESSAGE_CREATE", message(FIRST + 1, DM, "hi"));
    let asked_of_the_guild = RoleId::new(format!("{GUILD}/901")).unwrap();
    assert_eq!(bench.event().await.source.roles, [asked_of_the_guild]);
    let mut other = message(FIRST + 2, GENERAL, "hi");
    other["member"]["roles"] = json!(["900"]);
    bench.vendor.tell("MESSAGE_CREATE", other);
    assert_eq!(bench.event().await.source.roles, []);
}

#[tokio::test]
async fn a_thread_is_a_chat_of_its_own_that_knows_its_channel() {
    let mut bench = Bench::guild(json!({ "channel_prompts": { GENERAL: "Be brief." } })).await;
    bench.vendor.truth().channels.insert(
        "600".into(),
        json!({ "id": "600", "type": 11, "guild_id": GUILD, "parent_id": GENERAL, "name": "soup" }),
    );
    let mut said = message(FIRST, "600", "more salt");
    said["channel_type"] = json!(11);
    bench.vendor.tell("MESSAGE_CREATE", said);
    let (inbound, said) = bench.said().await;
    assert_eq!(inbound.to, address("600", ChatKind::Thread));
    assert_eq!(inbound.source.parent.unwrap().as_str(), GENERAL);
    assert_eq!(inbound.source.chat_name.as_deref(), Some("Home / #general / soup"));
    assert_eq!(said.channel_prompt.as_deref(), Some("Be brief."));
    assert_eq!(bench.vendor.rest.requests_to("/channels/600").len(), 1, "asked once");
}

#[tokio::test]
async fn an_edit_is_an_edit_and_a_preview_of_a_link_is_not() {
    let mut bench = Bench::direct().await;
    bench.vendor.tell("MESSAGE_UPDATE", message(FIRST, DM, "https://example.org"));
    let mut edited = message(FIRST, DM, "I meant soup");
    edited["edited_timestamp"] = json!("2026-11-15T09:31:00.000000+00:00");
    bench.vendor.tell("MESSAGE_UPDATE", edited.clone());
    let inbound = bench.event().await;
    let InboundKind::Edited(message) = &inbound.kind else { panic!("{inbound:?}") };
    assert_eq!(
        (message.text.as_str(), message.id.as_ref().unwrap().as_str().parse()),
        ("I meant soup", Ok(FIRST))
    );
    assert_eq!(inbound.to, direct());
    bench.vendor.tell("MESSAGE_UPDATE", edited);
    assert_eq!(bench.event().await.id, inbound.id, "the same edit, told again");
}

fn press(id: u64, custom_id: &str) -> Value {
    let mut asked = message(77, DM, "May I?");
    asked["author"]["id"] = json!(US);
    json!({
        "id": id.to_string(), "application_id": "1", "type": 3, "token": "interaction-token",
        "channel_id": DM, "channel": { "id": DM, "type": 1 },
        "user": { "id": ALICE, "username": "alice" }, "message": asked,
        "data": { "component_type": 2, "custom_id": custom_id },
    })
}

#[tokio::test]
async fn whoever_a_role_lets_in_may_press_and_choose_in_a_direct_chat() {
    let roles = json!({ "allowed_roles": ["901", "902", "903"], "dm_role_auth_guild": GUILD });
    let mut bench = Bench::guild(roles).await;
    bench.vendor.truth().roles = vec!["903".into(), "800".into(), "901".into()];
    let theirs = ["901", "903"].map(|role| RoleId::new(format!("{GUILD}/{role}")).unwrap());
    bench.vendor.tell("INTERACTION_CREATE", press(FIRST, "call-1.1"));
    assert_eq!(bench.event().await.source.roles, theirs);
    let mut command = press(FIRST + 1, "");
    command["type"] = json!(2);
    command["data"] = json!({ "type": 1, "name": "status" });
    bench.vendor.tell("INTERACTION_CREATE", command);
    assert_eq!(bench.event().await.source.roles, theirs);
    let members = bench.vendor.rest.requests_to(&format!("/guilds/{GUILD}/members/{ALICE}"));
    assert_eq!(members.len(), 1, "who was asked about lately is known");
}

#[tokio::test]
async fn a_button_is_answered_once_it_is_stored() {
    let mut bench = Bench::direct().await;
    bench.vendor.tell("INTERACTION_CREATE", press(FIRST, "call-1.1"));
    let batch = bench.batch().await.unwrap();
    let InboundKind::Pressed(choice) = &batch.events[0].kind else { panic!("pressed") };
    assert_eq!(choice.as_str(), "call-1.1");
    assert_eq!(batch.events[0].to, direct());
    assert!(bench.vendor.truth().answered.is_empty(), "not before");
    batch.ack.committed(Committed(vec![Verdict::Journalled(Seq(1))]));
    bench.until("an answer", |vendor| !vendor.truth().answered.is_empty()).await;
    assert_eq!(bench.vendor.truth().answered, [(FIRST.to_string(), json!({ "type": 6 }))]);
}

#[tokio::test]
async fn whoever_may_not_press_is_told_so_and_nobody_else_is() {
    let mut bench = Bench::direct().await;
    bench.vendor.tell("INTERACTION_CREATE", press(FIRST, "call-1.1"));
    let batch = bench.batch().await.unwrap();
    batch.ack.committed(Committed(vec![Verdict::Denied]));
    bench.until("an answer", |vendor| !vendor.truth().answered.is_empty()).await;
    let answer = bench.vendor.truth().answered[0].1.clone();
    assert_eq!((&answer["type"], &answer["data"]["flags"]), (&json!(4), &json!(64)));
    assert_eq!(answer["data"]["allowed_mentions"], json!({ "parse": [] }));
}

#[tokio::test]
async fn a_button_of_somebody_else_is_not_ours() {
    let mut bench = Bench::direct().await;
    let mut foreign = press(FIRST, "call-1.1");
    foreign["message"]["author"]["id"] = json!("4711");
    bench.vendor.tell("INTERACTION_CREATE", foreign);
    bench.vendor.tell("MESSAGE_CREATE", message(FIRST + 1, DM, "hello"));
    assert_eq!(bench.said().await.1.text, "hello");
}

#[tokio::test]
async fn a_command_from_the_menu_reads_as_if_it_was_typed() {
    let mut bench = Bench::guild(json!({})).await;
    let command = json!({
        "id": FIRST.to_string(), "type": 2, "token": "t", "guild_id": GUILD, "channel_id": GENERAL,
        "member": { "user": { "id": ALICE, "username": "alice" }, "nick": "Ally", "roles": [] },
        "data": { "type": 1, "name": "model", "options": [
            { "type": 1, "name": "set", "options": [
                { "type": 3, "name": "args", "value": "large --once" },
                { "type": 4, "name": "times", "value": 2 },
            ] },
        ] },
    });
    bench.vendor.tell("INTERACTION_CREATE", command);
    let batch = bench.batch().await.unwrap();
    let inbound = &batch.events[0];
    let InboundKind::Said(said) = &inbound.kind else { panic!("said") };
    assert_eq!(said.text, "/model set large --once 2");
    assert_eq!((said.addressed, said.id.as_ref()), (Addressed::ToUs, None));
    assert_eq!(inbound.to, address(GENERAL, ChatKind::Group));
    assert_eq!(inbound.source.chat_name.as_deref(), Some("Home / #general"));
    batch.ack.committed(Committed(vec![Verdict::Journalled(Seq(1))]));
    bench.until("an answer", |vendor| !vendor.truth().answered.is_empty()).await;
    assert_eq!(bench.vendor.truth().answered[0].1["data"]["flags"], 64);
}

#[tokio::test]
async fn files_are_named_and_fetched_from_discord_only() {
    use talaria_platform::FetchError;
    let mut bench = Bench::direct().await;
    let base = bench.vendor.rest.url().to_owned();
    let mut voice = message(FIRST, DM, "");
    voice["flags"] = json!(1 << 13);
    voice["attachments"] = json!([{ "id": "31", "filename": "voice.ogg", "size": 5,
        "content_type": "audio/ogg", "url": format!("{base}/cdn/attachments/1/2/voice.ogg?ex=old"),
        "duration_secs": 3.2, "waveform": "AA==" }]);
    // What Discord has by the time the address has expired.
    let mut renewed = voice.clone();
    renewed["attachments"][0]["url"] =
        json!(format!("{base}/cdn/attachments/1/2/voice.ogg?ex=new"));
    bench.vendor.truth().messages.entry(DM.into()).or_default().insert(FIRST, renewed);
    bench.vendor.tell("MESSAGE_CREATE", voice);
    let (_, said) = bench.said().await;
    assert_eq!(said.media[0].kind, MediaKind::Voice);
    assert_eq!(
        said.media[0].handle,
        format!("a:{DM}:{FIRST}:31"),
        "an address that expires is no name"
    );
    let bytes = bench.library.fetch(&said.media[0]).await.unwrap();
    let bytes: Vec<_> = bytes.map(|piece| piece.unwrap().to_vec()).collect().await;
    assert_eq!(bytes.concat(), b"sound");

    let refused = |result: Result<_, FetchError>| matches!(result, Err(FetchError::Refused { .. }));
    for (id, url) in [
        ("32", "http://169.254.169.254/latest/meta-data".to_owned()),
        ("33", "https://cdn.discordapp.com.evil.example/x".to_owned()),
        ("34", format!("{base}/cdn/attachments/1/2/moved.bin")),
    ] {
        let mut stray = message(FIRST + 1, DM, "look");
        stray["attachments"] = json!([{ "id": id, "filename": "x.bin", "url": url }]);
        bench
            .vendor
            .truth()
            .messages
            .entry(DM.into())
            .or_default()
            .insert(FIRST + 1, stray.clone());
        bench.vendor.tell("MESSAGE_CREATE", stray);
        let (_, said) = bench.said().await;
        assert!(refused(bench.library.fetch(&said.media[0]).await.map(drop)), "{url}");
    }
    let large = talaria_model::Media { size: Some(1 << 40), ..said.media[0].clone() };
    assert!(refused(bench.library.fetch(&large).await.map(drop)));
    let forged = talaria_model::Media { handle: "a:../..:1:2".into(), ..said.media[0].clone() };
    assert!(refused(bench.library.fetch(&forged).await.map(drop)));
}

#[tokio::test]
async fn a_file_that_is_larger_than_it_said_is_cut_off() {
    let (vendor, asked) = super::Vendor::open().await;
    let mut bench = Bench::on(vendor, asked, &json!({ "max_attachment_bytes": 1024 })).await;
    let url = format!("{}/cdn/attachments/1/2/large.bin", bench.vendor.rest.url());
    let mut said = message(FIRST, DM, "");
    said["attachments"] = json!([{ "id": "31", "filename": "large.bin", "size": 5, "url": url }]);
    bench.vendor.tell("MESSAGE_CREATE", said);
    let (_, said) = bench.said().await;
    assert!(bench.library.fetch(&said.media[0]).await.is_err());
}

#[tokio::test]
async fn a_connection_that_breaks_off_is_lost() {
    let mut bench = Bench::direct().await;
    bench.vendor.tell("MESSAGE_CREATE", message(FIRST, DM, "hello"));
    bench.event().await;
    // Taken down without a word, as by a router that forgot us.
    bench.vendor.truth().connections.clear();
    let lost = bench.batch().await.err();
    assert!(matches!(lost, Some(LinkError::Lost { .. })), "{lost:?}");
}
