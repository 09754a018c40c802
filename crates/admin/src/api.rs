//! What the command line asks the gateway and what it is told. Both ends use these types.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the gateway is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Status {
    /// The version that is running.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// `starting`, `ready`, `degraded`, `unconnected`, `draining` while it ends, or `unwritable`.
    #[serde(default)]
    pub state: String,
    /// When it started, in UTC.
    pub started: String,
    /// For how many seconds it has been running.
    pub uptime_seconds: u64,
    /// The model that answers.
    pub model: String,
    /// Who listens to voice messages and who speaks answers; absent where nobody does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voice: Option<String>,
    /// What is wrong with the configuration's files, while an older configuration applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration: Option<String>,
    /// What the configuration says and the gateway goes on without until it is restarted.
    #[serde(default)]
    pub waits_for_restart: Vec<WaitingChange>,
    /// Where the HTTP listener is.
    pub http: String,
    /// The accounts.
    pub accounts: Vec<Account>,
    /// Hooks that are not used.
    #[serde(default)]
    pub refused_hooks: Vec<RefusedHook>,
    /// Conversations known.
    pub sessions: u64,
    /// Sessions that are in memory at the moment.
    pub sessions_in_memory: u64,
    /// Turns that are not over.
    pub turns_in_hand: u64,
    /// Turns that work at the moment.
    #[serde(default)]
    pub turns_working: u64,
    /// Since when the one has worked that has worked for the longest, in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_since: Option<String>,
    /// Turns that wait for a place among those that may run at once.
    #[serde(default)]
    pub turns_waiting: u64,
    /// Since when the oldest of those waits, in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns_waiting_since: Option<String>,
    /// Events in the journal that no session has taken yet.
    pub unread: u64,
    /// Messages that a session has taken and that are part of no turn yet.
    #[serde(default)]
    pub waiting: u64,
    /// Since when the oldest of those waits, in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_since: Option<String>,
    /// Events that were set aside because they kept failing.
    pub quarantined: u64,
    /// Events that policy did not let in and that are written down.
    pub denied: u64,
    /// Events of strangers since the start of which nothing is written down, because there were too many
    /// in a day.
    #[serde(default)]
    pub denied_without_a_trace: u64,
    /// Messages that still have to be delivered.
    pub undelivered: u64,
    /// Messages that could not be delivered.
    pub failed: u64,
    /// The newest of those.
    #[serde(default)]
    pub losses: Vec<Loss>,
    /// Entries in all transcripts.
    pub entries: u64,
}

/// A hook that is not used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RefusedHook {
    /// What it is called: like its folder.
    pub name: String,
    /// What is wrong, what to do, and what is denied meanwhile.
    pub problem: String,
    /// The events that are denied meanwhile, because it guards them; `*` are all that hooks are asked about.
    pub denies: Vec<String>,
}

/// A setting that waits for a restart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WaitingChange {
    /// The setting.
    pub path: String,
    /// What the gateway runs with.
    pub running: String,
    /// What it runs with after a restart.
    pub configured: String,
}

/// How an account is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Account {
    /// Its name.
    pub name: String,
    /// Its platform.
    pub platform: String,
    /// `connecting`, `connected`, `waiting`, `deaf`, `paused`, `contested`, `refused` or `fatal`.
    pub state: String,
    /// Why it does not work, and what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// When it was last heard, in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heard: Option<String>,
    /// When something was last delivered on it, in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spoke: Option<String>,
    /// Why nothing that is said gets through at the moment, and since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mute: Option<String>,
    /// How often it broke down by the program's own fault since the start.
    #[serde(default)]
    pub crashes: u32,
    /// Messages of people who are not let in, within a day and as far as they were written down.
    #[serde(default)]
    pub denied_lately: u64,
    /// Who was not let in last, since the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stranger: Option<Stranger>,
}

/// A wish about an account's connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pausing {
    /// The account.
    pub account: String,
    /// What is to become of it.
    pub wish: PauseWish,
}

/// What is to become of an account's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PauseWish {
    /// It ends, until somebody says that it is to go on.
    Pause,
    /// It is made at once.
    Resume,
}

/// An account that was paused or resumed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Paused {
    /// The account.
    pub account: String,
    /// What was wished.
    pub wish: PauseWish,
}

/// Somebody who is not let in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stranger {
    /// Who, as `allow` wants it.
    pub id: String,
    /// When, in UTC.
    pub at: String,
}

/// Whether messages are taken in and answered, and where they are not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Readiness {
    /// `starting`, `ready`, `degraded`, `unconnected`, `draining` or `unwritable`.
    pub status: String,
    /// Turns that work at the moment.
    pub turns: u64,
    /// The accounts.
    pub accounts: Vec<Account>,
}

/// How the gateway is doing, in one word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Word {
    /// The word.
    pub status: String,
}

/// Conversations, and what all of them used together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sessions {
    /// The most recently used first.
    pub sessions: Vec<Session>,
    /// Everything there is, also what is not listed.
    pub totals: Totals,
}

/// A message that could not be delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Loss {
    /// The account it was to be sent on.
    pub account: String,
    /// The chat it was for.
    pub chat: String,
    /// When it was decided, in UTC.
    pub at: String,
    /// Why it could not be delivered.
    pub reason: String,
    /// Whether a notice about it was sent on its way there, or it is such a notice itself.
    pub told: bool,
}

/// A conversation in one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Session {
    /// Its id.
    pub id: String,
    /// Its key, as it is printed everywhere.
    pub key: String,
    /// The account it is on.
    pub account: String,
    /// The chat it is in, where that has an id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat: Option<String>,
    /// What it is about.
    pub title: String,
    /// When something happened last, in UTC.
    pub updated: String,
    /// Whether a turn is in hand.
    pub busy: bool,
    /// Why its chat went on with another one; absent for the one it is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<String>,
    /// Turns so far.
    pub turns: u32,
    /// What they used.
    pub used: Used,
}

/// Something that was approved for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Granted {
    /// Its id: what it does, as a digest.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// The account it is done on.
    pub account: String,
    /// The sender in whose name it is done.
    pub sender: String,
    /// Who approved it.
    pub by: String,
    /// When, in UTC.
    pub at: String,
    /// What they were shown.
    pub shown: String,
}

/// What somebody spent in a day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Spending {
    /// What they are.
    pub kind: PayerKind,
    /// The account; empty for a person, who may have several.
    pub account: String,
    /// The name of a person, or the id of a sender or a chat.
    pub name: String,
    /// How much.
    pub spent: Spent,
}

/// Who spends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PayerKind {
    /// Somebody whom the configuration knows by name.
    Person,
    /// Somebody else, on an account.
    Sender,
    /// All who write in a chat.
    Chat,
}

/// How much was spent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Spent {
    /// Messages that were answered.
    pub messages: u64,
    /// Tokens read and written.
    pub tokens: u64,
    /// Millionths of a US dollar, as far as prices are known.
    pub cost_micros: u64,
}

/// How much may be spent in a day; what is absent is not limited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Budget {
    /// Messages that are answered.
    pub messages: Option<u64>,
    /// Tokens read and written.
    pub tokens: Option<u64>,
    /// Millionths of a US dollar.
    pub cost_micros: Option<u64>,
}

/// Tokens and what they cost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Used {
    /// Tokens read, those from a cache not counted.
    pub input: u64,
    /// Tokens written, reasoning included.
    pub output: u64,
    /// Tokens read from the provider's prompt cache.
    pub cache_read: u64,
    /// Tokens written into the provider's prompt cache.
    pub cache_write: u64,
    /// The part of `output` that was reasoning.
    pub reasoning: u64,
    /// Tokens read and written, about, by answers that broke off before the provider counted them.
    #[serde(default)]
    pub estimated: u64,
    /// What they cost, in millionths of a US dollar, as far as that is known.
    pub cost_micros: u64,
    /// The same as people read it: `$0.0042`, `about $0.0042`, `free`, `at least $1.20` or `unknown`.
    pub cost: String,
}

/// What several conversations used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Totals {
    /// Conversations.
    pub sessions: u64,
    /// Turns. Those that a branch has in common with another conversation are counted once.
    pub turns: u64,
    /// What they used.
    pub used: Used,
}

/// One conversation and what was said in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Transcript {
    /// The conversation.
    pub session: Detail,
    /// The newest entries, oldest first.
    pub entries: Vec<Entry>,
}

/// One conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Detail {
    /// In one line.
    #[serde(flatten)]
    pub session: Session,
    /// When it began, in UTC.
    pub begun: String,
    /// Entries recorded in it.
    pub entries: u32,
    /// Tokens of its last prompt.
    pub prompt: u64,
    /// The model that was chosen for it, if one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The conversation that it is a branch of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branched_from: Option<String>,
}

/// Something that was said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Entry {
    /// Its place in the whole archive.
    pub position: u64,
    /// The conversation it was recorded in.
    pub session: String,
    /// When, in UTC.
    pub at: String,
    /// Who: a sender, `agent`, `tool` or `gateway`.
    pub who: String,
    /// What people call the sender.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `said`, `aside`, `answered`, `interrupted`, `returned`, `noticed` or `summary`.
    pub kind: String,
    /// What.
    pub text: String,
    /// The names of files that came along.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Tools that were called, with their arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Call>,
    /// When it was taken back, in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_back: Option<String>,
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Call {
    /// The tool.
    pub tool: String,
    /// Its arguments, as JSON.
    pub arguments: String,
}

/// One line of an export: the conversation first, then each of its entries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Exported {
    /// The conversation.
    Session(Box<Detail>),
    /// An entry, oldest first.
    Entry(Box<Entry>),
    /// There is no more because something went wrong. What came before is whole.
    Problem(String),
}

/// Something found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Found {
    /// What the conversation is about that it is in.
    pub title: String,
    /// That conversation's key.
    pub key: String,
    /// The entry.
    pub entry: Entry,
    /// The text around the match, the match between `[` and `]`.
    pub excerpt: String,
}

/// What was forgotten, or would be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pruned {
    /// Whether it was only looked at.
    pub dry_run: bool,
    /// How many conversations.
    pub sessions: u64,
    /// Some of those that would be forgotten, the most recently used first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub some: Vec<Session>,
    /// Bytes given back to the disk so far.
    pub freed: u64,
}

/// What became of what an id or a place leads to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Why {
    /// What was asked.
    pub asked: String,
    /// The events, the newest first.
    pub decisions: Vec<Decision>,
}

/// What became of one event, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Decision {
    /// Our id of it.
    pub event: String,
    /// The platform's id of what was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The account it came in on.
    pub account: String,
    /// The chat.
    pub chat: String,
    /// The thread in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// Who caused it.
    pub sender: String,
    /// `said`, `edited`, `pressed`, `stopped`, or `seen` when nothing was written down.
    pub kind: String,
    /// What became of it, in a few words.
    pub outcome: String,
    /// By which rule, where one decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The conversation it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The turn that it is part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    /// Turns that were at work while it waited.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub behind: Vec<String>,
    /// What happened, in order.
    pub timeline: Vec<Moment>,
    /// The tools that were called for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolUse>,
    /// What hooks did about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<HookDeed>,
    /// What was to be delivered because of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// What was said, if that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The hook that wrote the text in place of what was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewritten_by: Option<String>,
}

/// What a hook did about something, without anybody's words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HookDeed {
    /// Which.
    pub hook: String,
    /// `allowed`, `rewrote`, `refused`, `handled`, or `failed` where its `on_failure` denied it.
    pub did: String,
    /// Why it failed to decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Moment {
    /// When, in UTC.
    pub at: String,
    /// How many milliseconds after the event came in.
    pub after_ms: u64,
    /// What.
    pub what: String,
}

/// A tool that was called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolUse {
    /// Which.
    pub tool: String,
    /// `returned`, `went wrong` or `not returned`.
    pub outcome: String,
    /// How long that took, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
}

/// One part of what had to be delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Part {
    /// Our id of it.
    pub id: String,
    /// How far it is.
    pub state: String,
    /// The platform's id of the message that shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// How often it may have left this machine.
    pub attempts: u32,
    /// Why it will never be delivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When it was decided, in UTC.
    pub decided: String,
    /// When it was delivered or given up, in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<String>,
    /// How long after it was decided that was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
}

/// What changed when the configuration was read again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reloaded {
    /// Settings that apply from now on.
    pub live: Vec<String>,
    /// Accounts whose settings have changed, and what came of connecting them anew.
    #[serde(default)]
    pub accounts: Vec<AccountReloaded>,
    /// Settings that apply after a restart.
    pub after_restart: Vec<String>,
    /// What is odd about the file.
    pub warnings: Vec<String>,
}

impl Reloaded {
    /// Whether nothing has changed.
    pub fn is_nothing(&self) -> bool {
        self.live.is_empty() && self.accounts.is_empty() && self.after_restart.is_empty()
    }
}

/// What came of connecting an account anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AccountReloaded {
    /// The account.
    pub account: String,
    /// What became of it.
    pub outcome: String,
    /// What is wrong, if anything is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Whether it runs with its old settings, because it did not work with the new ones.
    pub rolled_back: bool,
}

impl std::fmt::Display for AccountReloaded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.account, self.outcome)?;
        match &self.problem {
            Some(problem) => write!(f, " ({problem})"),
            None => Ok(()),
        }
    }
}

/// What reading the configuration again would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigPlan {
    /// What is different from what runs.
    pub changes: Vec<PlannedChange>,
    /// Accounts that run with older settings, because they did not work with those that are set. They
    /// would be tried again.
    pub held_back: Vec<String>,
    /// What is odd about the file.
    pub warnings: Vec<String>,
}

/// A setting that is different from what runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedChange {
    /// The setting.
    pub path: String,
    /// What it is.
    pub before: String,
    /// What it becomes.
    pub after: String,
    /// What that does.
    pub effect: ChangeEffect,
    /// The account that it is about, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
}

/// What a change does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChangeEffect {
    /// It applies at once.
    Live,
    /// Its account is connected anew.
    Account,
    /// It applies after a restart.
    Restart,
    /// It was read already and waits for a restart.
    Waiting,
}

/// Why a request was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// What is wrong.
    pub problem: String,
}

/// Who asks to be let in on an account and who was, or what came of letting somebody in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pairing {
    /// The account.
    pub account: String,
    /// The code that was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub code: Option<FreshCode>,
    /// Who was let in or put out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender: Option<String>,
    /// As they call themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How many requests and codes were forgotten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forgotten: Option<u64>,
    /// Who asks.
    #[serde(default)]
    pub requests: Vec<PairingRequest>,
    /// Codes that are out, without the codes.
    #[serde(default)]
    pub codes: Vec<PairingCode>,
    /// Who was let in.
    #[serde(default)]
    pub guests: Vec<Guest>,
    /// Until when nobody is let in, because of too many wrong codes; in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locked_until: Option<String>,
}

/// A code on its way to whoever asked for it. Printed, it does not show.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FreshCode(pub String);

impl fmt::Debug for FreshCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FreshCode(…)")
    }
}

/// Somebody who asks to be let in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PairingRequest {
    /// Their id.
    pub sender: String,
    /// As they call themselves.
    pub name: Option<String>,
    /// When they asked, in UTC.
    pub asked: String,
    /// Until when their code is good, in UTC.
    pub expires: String,
}

/// A code that is out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PairingCode {
    /// Who made it.
    pub by: String,
    /// Until when it is good, in UTC.
    pub expires: String,
    /// Whether whoever says it is heard in chats of several people, too.
    pub everywhere: bool,
}

/// Somebody who was let in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Guest {
    /// Their id.
    pub sender: String,
    /// As they called themselves.
    pub name: Option<String>,
    /// Since when, in UTC.
    pub since: String,
    /// By whom.
    pub by: String,
    /// Whether they are heard in chats of several people, too.
    pub everywhere: bool,
}

/// A row of the record of who was let in and what was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditRow {
    /// Its place, from one on.
    pub seq: u64,
    /// When, in UTC.
    pub at: String,
    /// When, in milliseconds since 1970.
    pub at_ms: i64,
    /// Who did it.
    pub actor: String,
    /// What.
    pub deed: String,
    /// To whom or what.
    pub subject: String,
    /// What else matters.
    pub detail: String,
    /// The digest of the row before.
    pub previous: String,
    /// The digest of this row and the one before.
    pub hash: String,
}
