//! What people see of a configuration, and of what became of it.

use talaria_config::{Applies, Sources, load};

use crate::{loaded, platforms, sources};

const YAML: &str = "\
model: a/b
agent:
  turn_limit: 45m
providers:
  p: {api_key: key, headers: {x-a: b}}
accounts:
  pigeon: {token: ring, allow: [1], route: {by: map, password: map-word}}
";

#[test]
fn every_setting_is_shown_with_its_origin() {
    let lines: Vec<String> = loaded(YAML, &["TALARIA_LOG__FORMAT=json"])
        .show()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        lines.join("\n"),
        "\
model = a/b  (config.yaml:1)
fallback = []  (default)
providers.p.wire = (not set)  (default)
providers.p.base_url = (not set)  (default)
providers.p.api_key = (hidden)  (config.yaml:5)
providers.p.api_key_env = (not set)  (default)
providers.p.model = (not set)  (default)
providers.p.headers.x-a = (hidden)  (config.yaml:5)
providers.p.context_window = (not set)  (default)
providers.p.max_tokens = (not set)  (default)
providers.p.vision = (not set)  (default)
providers.p.thinking = (not set)  (default)
providers.p.thinking_budget = (not set)  (default)
providers.p.extra_body = {}  (default)
accounts.pigeon.platform = pigeon  (default)
accounts.pigeon.enabled = true  (default)
accounts.pigeon.allow = [\"1\"]  (config.yaml:7)
accounts.pigeon.allow_from = []  (default)
accounts.pigeon.group_allow_from = []  (default)
accounts.pigeon.allow_everyone = false  (default)
accounts.pigeon.dm_policy = (not set)  (default)
accounts.pigeon.group_policy = (not set)  (default)
accounts.pigeon.unauthorized_dm_behavior = (not set)  (default)
accounts.pigeon.require_mention = true  (default)
accounts.pigeon.mention_patterns = []  (default)
accounts.pigeon.thread_require_mention = false  (default)
accounts.pigeon.free_response_chats = []  (default)
accounts.pigeon.allowed_chats = []  (default)
accounts.pigeon.guest_mode = false  (default)
accounts.pigeon.ignored_chats = []  (default)
accounts.pigeon.allow_bots = none  (default)
accounts.pigeon.bot_messages_per_minute = 10  (default)
accounts.pigeon.observe_unmentioned = false  (default)
accounts.pigeon.bystanders = heard  (default)
accounts.pigeon.edited_messages = ignore  (default)
accounts.pigeon.allow_admin_from = []  (default)
accounts.pigeon.user_allowed_commands = []  (default)
accounts.pigeon.group_allow_admin_from = []  (default)
accounts.pigeon.group_user_allowed_commands = []  (default)
accounts.pigeon.admins_unless_named = listed  (default)
accounts.pigeon.session_reset.mode = (not set)  (default)
accounts.pigeon.session_reset.at_hour = (not set)  (default)
accounts.pigeon.session_reset.idle_minutes = (not set)  (default)
accounts.pigeon.session_reset.notify = (not set)  (default)
accounts.pigeon.streaming.transport = (not set)  (default)
accounts.pigeon.streaming.edit_interval = (not set)  (default)
accounts.pigeon.streaming.buffer_threshold = (not set)  (default)
accounts.pigeon.streaming.cursor = (not set)  (default)
accounts.pigeon.streaming.fresh_final_after_seconds = (not set)  (default)
accounts.pigeon.display.tool_progress = (not set)  (default)
accounts.pigeon.display.runtime_footer = (not set)  (default)
accounts.pigeon.reply_to_mode = first  (default)
accounts.pigeon.token = (hidden)  (config.yaml:7)
accounts.pigeon.base_url = https://loft.example/v1  (default)
accounts.pigeon.route.by = map  (config.yaml:7)
accounts.pigeon.route.password = (hidden)  (config.yaml:7)
accounts.pigeon.roofs = (not set)  (default)
accounts.pigeon.spare_keys = (not set)  (default)
accounts.desk.platform = desk  (default)
accounts.desk.enabled = true  (default)
accounts.desk.allow = []  (default)
accounts.desk.allow_from = []  (default)
accounts.desk.group_allow_from = []  (default)
accounts.desk.allow_everyone = false  (default)
accounts.desk.dm_policy = (not set)  (default)
accounts.desk.group_policy = (not set)  (default)
accounts.desk.unauthorized_dm_behavior = (not set)  (default)
accounts.desk.require_mention = true  (default)
accounts.desk.mention_patterns = []  (default)
accounts.desk.thread_require_mention = false  (default)
accounts.desk.free_response_chats = []  (default)
accounts.desk.allowed_chats = []  (default)
accounts.desk.guest_mode = false  (default)
accounts.desk.ignored_chats = []  (default)
accounts.desk.allow_bots = none  (default)
accounts.desk.bot_messages_per_minute = 10  (default)
accounts.desk.observe_unmentioned = false  (default)
accounts.desk.bystanders = heard  (default)
accounts.desk.edited_messages = ignore  (default)
accounts.desk.allow_admin_from = []  (default)
accounts.desk.user_allowed_commands = []  (default)
accounts.desk.group_allow_admin_from = []  (default)
accounts.desk.group_user_allowed_commands = []  (default)
accounts.desk.admins_unless_named = listed  (default)
accounts.desk.session_reset.mode = (not set)  (default)
accounts.desk.session_reset.at_hour = (not set)  (default)
accounts.desk.session_reset.idle_minutes = (not set)  (default)
accounts.desk.session_reset.notify = (not set)  (default)
accounts.desk.streaming.transport = (not set)  (default)
accounts.desk.streaming.edit_interval = (not set)  (default)
accounts.desk.streaming.buffer_threshold = (not set)  (default)
accounts.desk.streaming.cursor = (not set)  (default)
accounts.desk.streaming.fresh_final_after_seconds = (not set)  (default)
accounts.desk.display.tool_progress = (not set)  (default)
accounts.desk.display.runtime_footer = (not set)  (default)
accounts.desk.reply_to_mode = first  (default)
accounts.desk.plant = (not set)  (default)
watch_config = true  (default)
timezone = (not set)  (default)
session_store_max_age_days = 0  (default)
entry_max_age_days = 0  (default)
access.allow = []  (default)
access.allow_everyone = false  (default)
access.unauthorized_dm_behavior = (not set)  (default)
budgets.person.messages = (not set)  (default)
budgets.person.tokens = (not set)  (default)
budgets.person.cost = (not set)  (default)
budgets.guest.messages = (not set)  (default)
budgets.guest.tokens = (not set)  (default)
budgets.guest.cost = (not set)  (default)
budgets.chat.messages = (not set)  (default)
budgets.chat.tokens = (not set)  (default)
budgets.chat.cost = (not set)  (default)
agent.instructions = (not set)  (default)
agent.max_steps = 90  (default)
agent.turn_limit = 45m  (config.yaml:3)
agent.question_limit = 24h  (default)
agent.first_token_limit = 2m  (default)
agent.idle_limit = 1m  (default)
agent.silence_limit = 30m  (default)
agent.gateway_auto_continue_freshness = 3600  (default)
agent.restart_drain_timeout = 180  (default)
agent.busy_input_mode = interrupt  (default)
agent.busy_ack_enabled = true  (default)
approvals.mode = ask  (default)
approvals.limit = 5m  (default)
approvals.by = requester  (default)
approvals.deny = []  (default)
compression.enabled = true  (default)
compression.threshold = 0.5  (default)
compression.protect_first_n = 3  (default)
compression.protect_last_n = 20  (default)
group_sessions_per_user = true  (default)
thread_sessions_per_user = false  (default)
streaming.transport = auto  (default)
streaming.edit_interval = 0.8  (default)
streaming.buffer_threshold = 24  (default)
streaming.cursor =  ▉  (default)
streaming.fresh_final_after_seconds = 60  (default)
display.tool_progress = off  (default)
display.runtime_footer = false  (default)
sessions.stop = wipe  (default)
session_reset.mode = both  (default)
session_reset.at_hour = 4  (default)
session_reset.idle_minutes = 1440  (default)
session_reset.notify = true  (default)
session_reset.notify_exclude_platforms = [\"api_server\",\"webhook\"]  (default)
privacy.redact_pii = false  (default)
http.listen = 127.0.0.1:8420  (default)
http.allowed_hosts = []  (default)
network.proxy = (not set)  (default)
files.limit = 25MB  (default)
files.quota = 2GB  (default)
files.message_limit = 100MB  (default)
files.sender_quota = 1GB  (default)
files.fetch_time = 2m  (default)
files.send_from = []  (default)
voice.replies = to_voice  (default)
voice.transcribe.base_url = (not set)  (default)
voice.transcribe.api_key = (not set)  (default)
voice.transcribe.api_key_env = (not set)  (default)
voice.transcribe.model = whisper-1  (default)
voice.transcribe.language = (not set)  (default)
voice.transcribe.command = (not set)  (default)
voice.transcribe.convert = (not set)  (default)
voice.transcribe.timeout = 2m  (default)
voice.transcribe.limit = 25MB  (default)
voice.transcribe.at_once = 2  (default)
voice.transcribe.audio_files = false  (default)
voice.transcribe.echo = true  (default)
voice.speak.base_url = (not set)  (default)
voice.speak.api_key = (not set)  (default)
voice.speak.api_key_env = (not set)  (default)
voice.speak.model = tts-1  (default)
voice.speak.voice = alloy  (default)
voice.speak.format = opus  (default)
voice.speak.command = (not set)  (default)
voice.speak.convert = (not set)  (default)
voice.speak.timeout = 2m  (default)
voice.speak.longest = 4000  (default)
voice.speak.at_once = 2  (default)
log.level = info  (default)
log.format = json  (environment TALARIA_LOG__FORMAT)
log.files = 5  (default)
log.file_size = 10MB  (default)
telemetry.otlp = (not set)  (default)
telemetry.metrics_token = (not set)  (default)
limits.lanes_in_memory = 256  (default)
limits.pending_per_session = 64  (default)
limits.queued_per_session = 32  (default)
limits.background_per_session = 4  (default)
limits.turns_at_once = 1000  (default)"
    );
}

#[test]
fn a_line_is_data_too() {
    let lines = loaded(YAML, &[]).show();
    let find = |path: &str| {
        let line = lines.iter().find(|line| line.path == path).expect("a setting");
        serde_json::to_string(line).expect("plain data")
    };
    assert_eq!(
        find("agent.turn_limit"),
        r#"{"path":"agent.turn_limit","value":"45m","origin":{"from":"file","line":3,"column":3}}"#
    );
    assert_eq!(
        find("agent.instructions"),
        r#"{"path":"agent.instructions","value":null,"origin":{"from":"default"}}"#
    );
    assert_eq!(
        find("accounts.pigeon.token"),
        r#"{"path":"accounts.pigeon.token","value":"(hidden)","origin":{"from":"file","line":7,"column":12}}"#
    );
}

fn explain(yaml: &str, variables: &[&str], path: &str) -> String {
    match loaded(yaml, variables).explain(path) {
        Ok(explanation) => explanation.to_string(),
        Err(unknown) => unknown.to_string(),
    }
}

#[test]
fn a_setting_is_explained_with_all_its_layers() {
    let sources = sources(YAML, &["TALARIA_AGENT__TURN_LIMIT=1h"])
        .with_dotenv("TALARIA_AGENT__TURN_LIMIT=50m");
    let loaded = load(sources, &platforms::ALL).expect("right");
    assert_eq!(
        loaded.explain("agent.turn_limit").expect("a setting").to_string(),
        "\
agent.turn_limit = 1h
  from        environment TALARIA_AGENT__TURN_LIMIT
  instead of  50m (.env:1)
  instead of  45m (config.yaml:3)
  default     30m
  takes       duration, like 30s, 5m or 2h
  variable    TALARIA_AGENT__TURN_LIMIT
  applies     after a restart

How long one turn may take, waiting for answers to its questions not counted."
    );
}

#[test]
fn a_secret_is_explained_without_being_told() {
    let text = explain(YAML, &["TALARIA_ACCOUNTS__PIGEON__TOKEN=other"], "accounts.pigeon.token");
    assert_eq!(
        text,
        "\
accounts.pigeon.token = (hidden)
  from        environment TALARIA_ACCOUNTS__PIGEON__TOKEN
  instead of  (hidden) (config.yaml:7)
  default     (not set)
  takes       secret
  variable    TALARIA_ACCOUNTS__PIGEON__TOKEN
  applies     at once; its account is connected anew

The token of the loft. It is printed on the ring."
    );
}

#[test]
fn what_is_not_configured_can_be_explained() {
    let first = |path| explain("", &[], path).lines().next().unwrap_or_default().to_owned();
    assert_eq!(first("accounts.owl.password"), "accounts.owl.password = (not set)");
    assert_eq!(first("accounts.owl.awake"), "accounts.owl.awake = night");
    assert_eq!(first("providers.any.wire"), "providers.any.wire = (not set)");
    assert_eq!(first("log"), "log: What the gateway writes about itself.");
    assert_eq!(
        first("turn_limit"),
        "there is no setting turn_limit; did you mean agent.turn_limit?"
    );
    assert_eq!(first("agent.turn"), "there is no setting agent.turn");
    assert_eq!(
        first("accounts.owl.allowed_from"),
        "there is no setting accounts.owl.allowed_from; did you mean accounts.owl.allow_from?"
    );
    assert_eq!(first("model.x"), "there is no setting model.x");
    assert_eq!(first(""), "there is no setting ");
    let explained = explain(YAML, &[], "providers.p.headers.x-a");
    assert!(explained.contains("variable    TALARIA_PROVIDERS__P__HEADERS\n"), "{explained}");
}

#[test]
fn everything_shown_can_be_explained() {
    let loaded = loaded(YAML, &[]);
    for line in loaded.show() {
        let explained = loaded.explain(&line.path).expect("a setting").to_string();
        assert!(explained.starts_with(&format!("{} = {}\n", line.path, line.value)), "{explained}");
    }
}

#[test]
fn a_reload_tells_what_changed_and_when_it_applies() {
    let before = loaded(YAML, &[]);
    let yaml = YAML
        .replace("45m", "2700s")
        .replace("api_key: key", "api_key: other")
        .replace("allow: [1]", "allow: [1, 2]")
        .replace("headers: {x-a: b}", "wire: openai")
        + "http: {listen: '127.0.0.1:1'}\n";
    let (after, changes) = before.reload(sources(&yaml, &[])).expect("right");
    let changes: Vec<String> = changes
        .iter()
        .map(|change| {
            let applies = match change.applies {
                Applies::Live => "live",
                Applies::Account => "account",
                Applies::Restart => "restart",
            };
            format!("{}: {} → {} {applies}", change.path, change.before, change.after)
        })
        .collect();
    assert_eq!(
        changes,
        [
            "providers.p.wire: (not set) → openai live",
            "providers.p.api_key: (hidden) → (hidden) live",
            "accounts.pigeon.allow: [\"1\"] → [\"1\",\"2\"] live",
            "http.listen: 127.0.0.1:8420 → 127.0.0.1:1 restart",
            "providers.p.headers.x-a: (hidden) → (not set) live",
        ]
    );
    assert_eq!(after.config().http.listen.port(), 1);
    assert_eq!(before.config().http.listen.port(), 8420);
}

#[test]
fn a_bad_file_does_not_replace_a_good_configuration() {
    let before = loaded(YAML, &[]);
    let problems = before.reload(Sources::default().with_config("agent: {turn_limit: soon}"));
    assert!(problems.is_err());
    assert_eq!(before.config().agent.turn_limit.as_secs(), 45 * 60);
    let (_, changes) = before.reload(sources(YAML, &[])).expect("right");
    assert_eq!(changes, []);
}
