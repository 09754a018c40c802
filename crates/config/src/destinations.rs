//! Settings of the chats that messages may be sent to by a name.

use schemars::JsonSchema;
use serde::Deserialize;
use talaria_model::{AccountId, Address, Chat, ChatId, ChatKind, ThreadId};

use crate::approvals::AskBefore;
use crate::finding::Finding;
use crate::known::below;
use crate::nearest::nearest;
use crate::rules::{Origins, Verdict};
use crate::settings::Config;
use crate::single::brief;

/// A chat that messages may be sent to by its name.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DestinationSettings {
    /// The account that sends them.
    #[schemars(length(min = 1), extend("x-applies" = "live"))]
    pub account: String,

    /// The chat, by the id that its platform gives it. `talaria sessions` shows those of the conversations that
    /// there are.
    #[schemars(length(min = 1), extend("x-applies" = "live"))]
    pub chat: String,

    /// What kind of chat it is: `dm`, `group`, `channel`, `thread` or `forum`.
    #[serde(default = "usual_kind")]
    #[schemars(
        with = "String",
        extend("enum" = ["dm", "group", "channel", "thread", "forum"], "x-applies" = "live")
    )]
    pub kind: ChatKind,

    /// The thread in the chat.
    #[serde(default)]
    #[schemars(length(min = 1), extend("x-applies" = "live"))]
    pub thread: Option<String>,

    /// What it is, in a sentence for the model.
    #[serde(default)]
    #[schemars(length(min = 1), extend("x-applies" = "live"))]
    pub about: Option<String>,

    /// Whether a person is asked before anything is sent there.
    #[serde(default)]
    #[schemars(extend("x-applies" = "live"))]
    pub ask: AskBefore,
}

const fn usual_kind() -> ChatKind {
    ChatKind::Group
}

impl DestinationSettings {
    /// Where it is, if that can be read.
    pub fn address(&self) -> Option<Address> {
        let thread = match &self.thread {
            Some(thread) => Some(ThreadId::new(thread.as_str()).ok()?),
            None => None,
        };
        Some(Address {
            account: AccountId::new(self.account.as_str()).ok()?,
            chat: Chat { id: ChatId::new(self.chat.as_str()).ok()?, kind: self.kind },
            thread,
        })
    }
}

/// Checks where messages may be sent, once the accounts are known.
pub(crate) fn check(config: &Config, origins: &Origins<'_>, verdict: &mut Verdict) {
    let is_account = |name: &str| config.accounts.keys().any(|account| account.as_str() == name);
    for (name, settings) in &config.destinations {
        let path = below("destinations", name);
        let found = |key: &str, value: &str, expectation: String| {
            let path = below(&path, key);
            Finding::at(&origins.of(&path), &path, expectation)
                .with_value(format!("{:?}", brief(value)))
        };
        if is_account(name) {
            let expectation = "is the name of an account, which stands for the account's home; choose \
                               another one";
            verdict.problems.push(Finding::at(&origins.of(&path), &path, expectation));
        }
        let account = &settings.account;
        // An account that is wrong itself was told of already.
        if !is_account(account) && origins.is_sound(&below("accounts", account)) {
            let close = nearest(account, config.accounts.keys().map(AccountId::as_str));
            let way_on = close.map_or_else(
                || "connect it with `talaria setup`, or take the destination out".to_owned(),
                |close| format!("did you mean {close}?"),
            );
            let expectation = format!("is no account of yours; {way_on}");
            verdict.problems.push(found("account", account, expectation));
        }
        if let Err(error) = ChatId::new(settings.chat.as_str()) {
            verdict.problems.push(found("chat", &settings.chat, error.to_string()));
        }
        let thread = settings.thread.as_deref().unwrap_or_default();
        if let (Some(_), Err(error)) = (&settings.thread, ThreadId::new(thread)) {
            verdict.problems.push(found("thread", thread, error.to_string()));
        }
    }
    for (name, role) in &config.roles {
        let path = below(&below("roles", name), "destinations");
        for (index, named) in role.destinations.iter().flatten().enumerate() {
            if config.destinations.contains_key(named) || is_account(named) {
                continue;
            }
            let names = config.destinations.keys().map(String::as_str);
            let names = names.chain(config.accounts.keys().map(AccountId::as_str));
            let close = nearest(named, names);
            let close = close.map_or(String::new(), |close| format!("; did you mean {close}?"));
            let expectation =
                format!("is neither in destinations nor an account, whose home is meant{close}");
            let finding = Finding::at(&origins.of(&path), &format!("{path}[{index}]"), expectation);
            verdict.problems.push(finding.with_value(format!("{:?}", brief(named))));
        }
    }
}
