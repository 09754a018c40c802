//! `talaria setup` with the real binary, in front of a Telegram that follows a script.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};
use talaria_testkit::scripted::{Fault, Reply, Request, Scripted};
use talaria_testkit::{Home, Launch, within};

use crate::rig::{HANGS, binary, run};
use crate::terminal::{CTRL_C, Seat};

const TOKEN: &str = "42:a-secret-of-the-bot";

const UNTOUCHED: &str = "# everything about me\nmodel: demo # for now\n";

/// A Telegram that knows one bot.
async fn telegram() -> Scripted {
    Scripted::listen(|request: &Request| {
        let Some(method) = request.path.strip_prefix(&format!("/bot{TOKEN}/")) else {
            let no = json!({ "ok": false, "error_code": 401, "description": "Unauthorized" });
            return Reply::status(401, no.to_string());
        };
        let result = match method {
            "getMe" => json!({
                "id": 42, "is_bot": true, "first_name": "Tally", "username": "tally_bot",
                "can_join_groups": true, "can_read_all_group_messages": false,
            }),
            "getWebhookInfo" => json!({ "url": "", "pending_update_count": 0 }),
            "getUpdates" => return Reply::Silence,
            _ => json!(true),
        };
        Reply::json(&json!({ "ok": true, "result": result }))
    })
    .await
}

/// A home whose account is at this Telegram and is otherwise not set up.
fn home(vendor: &str) -> Home {
    let home = Home::empty().unwrap();
    let accounts = format!("accounts:\n  telegram: # mine\n    base_url: {vendor}\n");
    home.write("config.yaml", &format!("{UNTOUCHED}{accounts}")).unwrap();
    home
}

fn read(home: &Home, name: &str) -> String {
    std::fs::read_to_string(home.file(name)).unwrap_or_default()
}

async fn run_with(
    home: &Path,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> (Option<i32>, String) {
    let launch = variables.iter().fold(Launch::new(binary()).arguments(arguments), |launch, it| {
        launch.environment(it.0, it.1)
    });
    let mut process = launch.start(home).unwrap();
    let ended = within(HANGS, arguments.join(" "), process.ended()).await.unwrap();
    (ended.code(), process.drained().await)
}

#[tokio::test]
async fn flags_set_an_account_up_and_again_changes_nothing() {
    let vendor = telegram().await;
    let home = home(vendor.url());
    let command = ["setup", "telegram", "--token", TOKEN, "--allow", "250918540", "--yes"];
    let (ended, output) = run(home.path(), &command).await;
    assert_eq!(ended.code(), Some(0), "{output}");
    assert!(output.contains("@tally_bot"), "{output}");
    assert!(output.contains("/setprivacy"), "remarks are shown: {output}");
    assert!(output.contains("talaria run"), "{output}");
    assert!(!output.contains(TOKEN), "{output}");
    assert_eq!(read(&home, ".env"), format!("TELEGRAM_BOT_TOKEN={TOKEN}\n"));
    let mode = home.file(".env").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let config = read(&home, "config.yaml");
    assert!(config.starts_with(UNTOUCHED), "{config}");
    assert!(config.contains("  telegram: # mine\n"), "{config}");
    assert!(config.contains("    allow: [250918540]\n"), "{config}");
    assert!(!config.contains(TOKEN), "{config}");
    assert!(vendor.requests_to("getUpdates").is_empty(), "nothing is heard");

    let (ended, output) = run(home.path(), &command).await;
    assert_eq!(ended.code(), Some(0), "{output}");
    assert!(output.contains("Nothing has changed"), "{output}");
    assert_eq!(read(&home, "config.yaml"), config);
    let (ended, output) = run(home.path(), &["setup", "telegram", "--yes"]).await;
    assert_eq!(ended.code(), Some(0), "what is set is kept: {output}");
    let (ended, output) = run(home.path(), &["config", "check"]).await;
    assert_eq!(ended.code(), Some(0), "{output}");
}

#[tokio::test]
async fn everybody_is_let_in_and_an_account_is_switched_on_when_that_is_wished() {
    let vendor = telegram().await;
    let home = home(vendor.url());
    let config = format!("{}    enabled: false\n", read(&home, "config.yaml"));
    home.write("config.yaml", &config).unwrap();
    let command = ["setup", "telegram", "--token", TOKEN, "--allow-everyone", "--yes"];
    let (ended, output) = run(home.path(), &command).await;
    assert_eq!(ended.code(), Some(0), "{output}");
    let config = read(&home, "config.yaml");
    assert!(config.contains("    allow_everyone: true\n"), "{config}");
    assert!(config.contains("    enabled: true\n"), "{config}");
    let (ended, output) = run(home.path(), &command).await;
    assert_eq!(ended.code(), Some(0), "{output}");
    assert_eq!(read(&home, "config.yaml"), config);
}

#[tokio::test]
async fn what_was_set_up_connects() {
    let vendor = telegram().await;
    let home = home(vendor.url());
    let (ended, output) = run(home.path(), &["setup", "telegram", "--token", TOKEN, "--yes"]).await;
    assert_eq!(ended.code(), Some(0), "{output}");
    assert!(output.contains("talaria pair approve telegram CODE"), "{output}");
    let mut process = Launch::new(binary()).start(home.path()).unwrap();
    within(HANGS, "the ready line", process.ready()).await.unwrap();
    asked_for_updates(&vendor).await;
    // Whoever is let in while it runs is told how it hears of that.
    let (ended, output) = run(home.path(), &["setup", "telegram", "--allow", "7", "--yes"]).await;
    assert_eq!(ended.code(), Some(0), "{output}");
    assert!(output.contains("talaria reload"), "{output}");
    let (ended, output) = run(home.path(), &["reload"]).await;
    assert_eq!(ended.code(), Some(0), "{output}");
    assert!(output.contains("accounts.telegram.allow"), "{output}");
}

async fn asked_for_updates(vendor: &Scripted) {
    let asked = async {
        while vendor.requests_to("getUpdates").is_empty() {
            tokio::task::yield_now().await;
        }
    };
    within(HANGS, "a question for updates", asked).await;
}

#[tokio::test]
async fn the_usual_variable_is_enough_to_run() {
    let vendor = telegram().await;
    let home = Home::empty().unwrap();
    let mut process = Launch::new(binary())
        .environment("TELEGRAM_BOT_TOKEN", TOKEN)
        .environment("TALARIA_ACCOUNTS__TELEGRAM__BASE_URL", vendor.url())
        .start(home.path())
        .unwrap();
    within(HANGS, "the ready line", process.ready()).await.unwrap();
    asked_for_updates(&vendor).await;
    assert!(!process.output().contains(TOKEN), "{}", process.output());
}

#[tokio::test]
async fn a_token_that_is_refused_is_not_written_down() {
    let vendor = telegram().await;
    let home = home(vendor.url());
    let before = read(&home, "config.yaml");
    let wrong = "43:another-secret";
    let (ended, output) = run(home.path(), &["setup", "telegram", "--token", wrong, "--yes"]).await;
    assert_eq!(ended.code(), Some(2), "{output}");
    assert!(output.contains("not accepted") && output.contains("@BotFather"), "{output}");
    assert!(!output.contains(wrong), "{output}");
    vendor.fault("getMe", Fault::Instead(Reply::status(502, "<html>")));
    let (ended, output) = run(home.path(), &["setup", "telegram", "--token", TOKEN, "--yes"]).await;
    assert_eq!(ended.code(), Some(1), "it may work later: {output}");
    assert!(output.contains("--no-check"), "{output}");
    assert_eq!(read(&home, "config.yaml"), before);
    assert!(!home.file(".env").exists());
    let unchecked = ["setup", "telegram", "--token", wrong, "--yes", "--no-check"];
    let (ended, output) = run(home.path(), &unchecked).await;
    assert_eq!(ended.code(), Some(0), "{output}");
    assert_eq!(read(&home, ".env"), format!("TELEGRAM_BOT_TOKEN={wrong}\n"));
}

#[tokio::test]
async fn answers_come_from_the_environment_and_each_account_has_its_own() {
    let vendor = telegram().await;
    let home = home(vendor.url());
    home.write(".env", "# keys\nOTHER='1'\n").unwrap();
    let variables = [("TELEGRAM_BOT_TOKEN", TOKEN)];
    let (code, output) = run_with(home.path(), &["setup", "telegram", "--yes"], &variables).await;
    assert_eq!(code, Some(0), "{output}");
    assert!(output.contains("taken from TELEGRAM_BOT_TOKEN"), "{output}");
    let dotenv = format!("# keys\nOTHER='1'\nTELEGRAM_BOT_TOKEN={TOKEN}\n");
    assert_eq!(read(&home, ".env"), dotenv);
    let work = ["setup", "telegram", "--account", "work", "--token", "44:x", "--yes", "--no-check"];
    let (ended, output) = run(home.path(), &work).await;
    assert_eq!(ended.code(), Some(0), "{output}");
    let expected = format!("{dotenv}TALARIA_ACCOUNTS__WORK__TOKEN=44:x\n");
    assert_eq!(read(&home, ".env"), expected);
    assert!(read(&home, "config.yaml").contains("  work:\n    platform: telegram\n"));
}

#[tokio::test]
async fn what_is_missing_or_wrong_is_named() {
    let home = Home::empty().unwrap();
    for (command, words) in [
        (&["setup"][..], "telegram"),
        (&["setup", "telegram"], "--token or TELEGRAM_BOT_TOKEN"),
        (&["setup", "telegarm", "--yes"], "there is no platform"),
        (&["setup", "web", "--yes"], "needs no setting up"),
        (&["setup", "discord", "--app-token", "x"], "does not ask --app-token"),
        (&["setup", "telegram", "--token", "42:a", "--account", "Not Good"], "not a name"),
        (&["setup", "telegram", "--manifest"], "nothing is pasted"),
        (&["setup", "telegram", "--token", " "], "--token is empty"),
        (&["setup", "telegram", "--token", "42:a", "--allow", " "], "--allow is empty"),
        (&["setup", "telegram", "--token", "42:a", "--allow", "@bob"], "names people"),
        (
            &["setup", "telegram", "--token", "42:a", "--webhook-url", "https://a.example/x"],
            "--webhook-secret or TELEGRAM_WEBHOOK_SECRET",
        ),
        (&["setup", "slack", "--bot-token", "xoxb-1", "--no-check"], "--signing-secret or"),
    ] {
        let (ended, output) = run(home.path(), command).await;
        assert_eq!(ended.code(), Some(2), "{command:?}: {output}");
        assert!(output.contains(words), "{command:?}: {output}");
    }
    assert!(!home.file("config.yaml").exists() && !home.file(".env").exists());
    home.write("config.yaml", "agent:\n  max_steps: many\n").unwrap();
    let (ended, output) = run(home.path(), &["setup", "telegram", "--token", "42:a"]).await;
    assert_eq!(ended.code(), Some(2), "{output}");
    assert!(output.contains("config.yaml:2: agent.max_steps"), "{output}");
}

#[tokio::test]
async fn a_file_that_cannot_be_changed_safely_is_left_alone() {
    let home = Home::empty().unwrap();
    let text = "accounts:\n  telegram: {\n    drafts: false }\n";
    home.write("config.yaml", text).unwrap();
    let command = ["setup", "telegram", "--token", TOKEN, "--allow", "7", "--yes", "--no-check"];
    let (ended, output) = run(home.path(), &command).await;
    assert_eq!(ended.code(), Some(2), "{output}");
    assert!(output.contains("was left as it is"), "{output}");
    let lines = "accounts:\n  telegram:\n    platform: telegram\n    allow: [7]\n";
    assert!(output.contains(lines) && output.contains("once more"), "all of it: {output}");
    assert_eq!(read(&home, "config.yaml"), text);
    assert!(!home.file(".env").exists(), "all or nothing");
}

#[tokio::test]
async fn an_account_in_braces_is_changed_in_its_braces() {
    let home = Home::empty().unwrap();
    let text = "# mine\naccounts:\n  telegram: {drafts: false, allow: [1]} # a bot\n";
    home.write("config.yaml", text).unwrap();
    let command = ["setup", "telegram", "--token", TOKEN, "--allow", "7", "--yes", "--no-check"];
    let (ended, output) = run(home.path(), &command).await;
    assert_eq!(ended.code(), Some(0), "{output}");
    let expected = "# mine\naccounts:\n  telegram: {drafts: false, allow: [1, 7], platform: telegram} \
                    # a bot\n";
    assert_eq!(read(&home, "config.yaml"), expected);
    assert_eq!(read(&home, ".env"), format!("TELEGRAM_BOT_TOKEN={TOKEN}\n"));
}

/// Each with the setting, where it is, and what to do; never with what is secret.
#[tokio::test]
async fn settings_that_cannot_connect_are_refused_before_anything_is_connected() {
    let home = Home::empty().unwrap();
    for (account, variable, words) in [
        (
            "telegram:\n    token: SECRET",
            "",
            "config.yaml:3: accounts.telegram.token: is not a bot's",
        ),
        ("telegram:", "TELEGRAM_BOT_TOKEN=SECRET", "TELEGRAM_BOT_TOKEN: accounts.telegram.token:"),
        (
            "telegram:\n    token: 42:SECRET\n    webhook_url: https://a.example/x",
            "",
            "accounts.telegram.webhook_secret: is missing, and webhook_url is set; set it to a long random \
             word: without it anybody could speak for Telegram (TELEGRAM_WEBHOOK_SECRET in .env",
        ),
        (
            "telegram:\n    token: 42:SECRET\n    webhook_url: http://a.example/x\n    webhook_secret: w",
            "",
            "config.yaml:4: accounts.telegram.webhook_url: is not an address that Telegram calls",
        ),
        ("discord:\n    token: SECRET", "", "accounts.discord.token: is not a bot's token"),
        (
            "discord:\n    token: a.b.SECRET\n    history_backfill_limit: 101",
            "",
            "config.yaml:4: accounts.discord.history_backfill_limit:",
        ),
        (
            "discord:\n    token: a.b.SECRET\n    allowed_roles: [cooks]",
            "",
            "config.yaml:4: accounts.discord.allowed_roles[0]: is not the id of a role",
        ),
        (
            "slack:\n    bot_token: xoxb-SECRET",
            "",
            "accounts.slack.app_token: is missing, and so is",
        ),
        (
            "slack:\n    bot_token: xoxp-SECRET\n    app_token: xapp-SECRET",
            "",
            "config.yaml:3: accounts.slack.bot_token: is not a bot token, which begins with xoxb-",
        ),
    ] {
        home.write("config.yaml", &format!("accounts:\n  {account}\n")).unwrap();
        let variables: Vec<_> = variable.split_once('=').into_iter().collect();
        for command in [&["config", "check"][..], &["run"]] {
            let (code, output) = run_with(home.path(), command, &variables).await;
            let refused = if command == ["run"] { 78 } else { 2 };
            assert_eq!(code, Some(refused), "{account}: {output}");
            assert!(output.contains(words), "{account}: {output}");
            assert!(!output.contains("SECRET\n") && !output.contains(":SECRET"), "{output}");
        }
    }
    // Setup completes what is set, and refuses what is no better.
    home.write("config.yaml", "accounts:\n  slack:\n    bot_token: xoxb-1\n").unwrap();
    let (ended, output) =
        run(home.path(), &["setup", "slack", "--app-token", "xoxb-2", "--no-check"]).await;
    assert_eq!(ended.code(), Some(2), "{output}");
    assert!(output.contains("accounts.slack.app_token") && output.contains("xapp-"), "{output}");
    let (ended, output) =
        run(home.path(), &["setup", "slack", "--app-token", "xapp-2", "--no-check"]).await;
    assert_eq!(ended.code(), Some(0), "{output}");
    assert_eq!(read(&home, ".env"), "SLACK_APP_TOKEN=xapp-2\n");
}

#[tokio::test]
async fn roles_are_somebody_who_is_heard() {
    let home = Home::empty().unwrap();
    let text = "accounts:\n  discord:\n    token: a.b.c\n    allowed_roles: [901]\n";
    home.write("config.yaml", text).unwrap();
    for command in [&["config", "check"][..], &["setup", "discord", "--yes", "--no-check"]] {
        let (ended, output) = run(home.path(), command).await;
        assert_eq!(ended.code(), Some(0), "{output}");
        assert!(!output.to_lowercase().contains("nobody is heard"), "{output}");
    }
}

#[tokio::test]
async fn guides_and_manifests_are_printed_for_whoever_needs_them() {
    let home = Home::empty().unwrap();
    let (ended, output) = run(home.path(), &["setup", "discord", "--guide"]).await;
    assert_eq!(ended.code(), Some(0), "{output}");
    assert!(output.contains("Discord"), "{output}");
    let (ended, output) = run(home.path(), &["setup", "slack", "--manifest"]).await;
    assert_eq!(ended.code(), Some(0), "{output}");
    let manifest: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(manifest["settings"]["socket_mode_enabled"], json!(true));
    let commands = manifest["features"]["slash_commands"].as_array().unwrap();
    assert!(commands.iter().any(|it| it["command"] == "/talaria"), "{manifest}");
    assert!(commands.iter().any(|it| it["command"] == "/stop"), "{manifest}");
    let account = "accounts:\n  slack:\n    bot_token: xoxb-1\n    signing_secret: a-secret-of-slack\n    \
                   slash_command: tally\n    agent_view: true\n";
    home.write("config.yaml", account).unwrap();
    let (ended, output) = run(home.path(), &["setup", "slack", "--manifest"]).await;
    assert_eq!(ended.code(), Some(0), "{output}");
    let manifest: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(manifest["settings"]["socket_mode_enabled"], json!(false));
    assert!(manifest["features"]["agent_view"].is_object(), "{manifest}");
    let commands = manifest["features"]["slash_commands"].as_array().unwrap();
    assert!(commands.iter().any(|it| it["command"] == "/tally"), "{manifest}");
}

#[tokio::test]
async fn a_person_is_asked_and_a_secret_is_not_shown() {
    let vendor = telegram().await;
    let home = home(vendor.url());
    let mut seat = Seat::at(home.path(), &["setup"]);
    seat.reads("Which one").await;
    seat.says("telegram");
    // It is no token at all.
    answer(&mut seat, "43-wrong-secret").await;
    seat.reads("get one from @BotFather").await;
    answer(&mut seat, "43:wrong-secret").await;
    seat.reads("not accepted").await;
    // Only what was typed is asked for again.
    answer(&mut seat, TOKEN).await;
    seat.reads("@tally_bot").await;
    seat.reads("Your id there").await;
    seat.says("@alice");
    seat.reads("is not how Telegram names people").await;
    seat.says("250918540");
    assert_eq!(seat.ended().await.code(), Some(0));
    seat.reads("talaria run").await;
    let seen = seat.text();
    assert!(!seen.contains("wrong-secret") && !seen.contains(TOKEN), "{seen}");
    assert!(!seen.contains("proves itself"), "an address is for those who want one: {seen}");
    assert!(seat.is_as_before());
    assert_eq!(read(&home, ".env"), format!("TELEGRAM_BOT_TOKEN={TOKEN}\n"));
    assert!(read(&home, "config.yaml").contains("allow: [250918540]"));
}

/// Gives a token where nobody can see it.
async fn answer(seat: &mut Seat, token: &str) {
    let is_asked = |seat: &Seat| seat.line().starts_with("The bot's token") && !seat.is_as_before();
    seat.sees("the question", is_asked).await;
    seat.says(token);
}

#[tokio::test]
async fn ctrl_c_changes_nothing_and_leaves_the_terminal_as_it_was() {
    let home = home("http://127.0.0.1:9");
    let before = read(&home, "config.yaml");
    let mut seat = Seat::at(home.path(), &["setup", "telegram"]);
    seat.reads("The bot's token").await;
    seat.sees("a curtain", |seat| !seat.is_as_before()).await;
    seat.types(CTRL_C);
    assert_eq!(seat.ended().await.code(), Some(1));
    assert!(seat.is_as_before());
    assert_eq!(read(&home, "config.yaml"), before);
    assert!(!home.file(".env").exists());
}

/// An operator who is told "look your id up in the log" finds it there.
#[tokio::test]
async fn the_log_and_the_status_name_who_was_not_let_in() {
    let vendor = Scripted::listen(|request: &Request| {
        let hello = json!([{
            "update_id": 7,
            "message": {
                "message_id": 1, "date": 1_441_645_532, "text": "hello",
                "chat": { "id": 1_111_111, "type": "private", "first_name": "Test" },
                "from": { "id": 1_111_111, "is_bot": false, "first_name": "Test" },
            },
        }]);
        let result = match request.path.rsplit('/').next() {
            Some("getMe") => json!({
                "id": 42, "is_bot": true, "first_name": "Tally", "username": "tally_bot",
            }),
            Some("getWebhookInfo") => json!({ "url": "", "pending_update_count": 0 }),
            Some("getUpdates")
                if String::from_utf8_lossy(&request.body).contains("\"offset\":8") =>
            {
                return Reply::Silence;
            }
            Some("getUpdates") => hello,
            _ => json!(true),
        };
        Reply::json(&json!({ "ok": true, "result": result }))
    })
    .await;
    let home = home(vendor.url());
    let launch = Launch::new(binary()).environment("TELEGRAM_BOT_TOKEN", TOKEN);
    let process = launch.start(home.path()).unwrap();
    let line = process.line(|line| line.contains("not let in"));
    let (_, line) = within(HANGS, "the line about the stranger", line).await;
    assert!(line.contains("1111111") && line.contains("telegram"), "{line}");
    assert!(!process.output().contains("hello"), "what a stranger says is not logged");
    let (ended, output) = run(home.path(), &["status"]).await;
    assert_eq!(ended.code(), Some(0), "{output}");
    let row = output.lines().find(|line| line.starts_with("telegram") && line.contains("1111111"));
    let words: Vec<&str> = row.expect(&output).split_whitespace().collect();
    assert_eq!(words[..3], ["telegram", "1", "1111111"], "how many, and who was last");
    assert!(output.contains("--allow"), "and what to do: {output}");
}
