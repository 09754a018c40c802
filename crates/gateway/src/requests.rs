//! What a session asks for because it does not know it or cannot do it itself.

use std::fmt::Write;
use std::sync::Arc;

use talaria_model::{
    AccountId, Address, Author, ChatId, ChatKind, Entry, EntryBody, Message, RoleId, Sender, Seq,
    SessionId, Timestamp,
};
use talaria_session::pairing::{Code, Issuer};
use talaria_session::{Event, PairWish, Past, Person, Recalled, Request, Rules, SessionKey, Told};
use talaria_store::{
    AuditDeed, Audited, Found, Life, Named, Owner, SearchScope, Spoken, StoreError, Wanted,
};

use crate::accounts::{self, AccountState};
use crate::pairing::{self, Paired, Wisher};
use crate::pausing::{self, PauseError};
use crate::shared::Shared;
use crate::spending::Tab;
use crate::tasks::{Panicked, calm};
use crate::turn::may_choose;

/// Lives that are listed and can be meant by their number.
const LISTED: usize = 10;

/// Places that a search shows.
const FOUND: usize = 8;

/// What a search looks through. Commands and their answers are left out: a search would find itself.
pub(crate) const SPOKEN: [Spoken; 2] = [Spoken::Said, Spoken::Answered];

/// The most of one entry that is shown, in characters.
const EXCERPT: usize = 240;

/// Entries that are looked through for those that people see.
const LOOKED_THROUGH: usize = 4;

/// A request and everything that decides what its answer may contain.
pub(crate) struct Asking {
    pub(crate) key: SessionKey,
    /// The life in which it was asked.
    pub(crate) life: SessionId,
    /// Whose that conversation is.
    pub(crate) owner: Owner,
    pub(crate) seq: Seq,
    pub(crate) from: Sender,
    /// Their roles on the platform, for which that vouches.
    pub(crate) roles: Vec<RoleId>,
    pub(crate) at: Address,
    /// The chat for which counts what happens there.
    pub(crate) chat: ChatId,
    pub(crate) request: Request,
}

/// Finds an answer in a task of its own and tells the session, whatever comes of it.
pub(crate) fn ask(shared: &Arc<Shared>, asking: Asking) {
    let task = {
        let shared = shared.clone();
        async move {
            let told = match calm(answer(&shared, &asking)).await {
                Ok(Ok(told)) => told,
                Ok(Err(error)) => {
                    tracing::warn!(session = %asking.key, %error, "a request cannot be answered");
                    Told::Text("I cannot look that up at the moment; try again later.".into())
                }
                Err(Panicked) => {
                    tracing::error!(session = %asking.key, "answering a request panicked");
                    Told::Text("Something went wrong inside me over that.".into())
                }
            };
            crate::lanes::tell(&shared, asking.key, Event::Told { seq: asking.seq, told });
        }
    };
    shared.tasks.spawn(task);
}

async fn answer(shared: &Arc<Shared>, asking: &Asking) -> Result<Told, StoreError> {
    let store = &shared.store;
    let steward = &shared.steward;
    let rules = shared.rules_for(&asking.key);
    let said = |done: Result<String, String>| Told::Text(done.unwrap_or_else(|refusal| refusal));
    Ok(match &asking.request {
        Request::Models => {
            let mut known = steward.models();
            known.retain(|name| {
                let whole = steward.model(name).unwrap_or_else(|_| name.clone());
                may_choose(shared, person(shared, asking).as_deref(), &whole)
            });
            Told::Text(models(&known))
        }
        Request::Model(name) => match steward.model(name) {
            Ok(whole) if !may_choose(shared, person(shared, asking).as_deref(), &whole) => {
                Told::Text(format!("Your role does not let you choose `{whole}`."))
            }
            Ok(whole) => Told::Model(whole),
            Err(refusal) => Told::Text(refusal),
        },
        Request::Left { said } => {
            let now = shared.clock.now();
            let at = (&asking.at, &asking.chat);
            let tab = Tab::at(shared, &asking.from, at, &asking.roles, rules, now);
            Told::Text(format!("{said}{}", tab.left(shared).await?))
        }
        Request::Recall { from, upto } => {
            let entries = store.history(&asking.life, shared.limits.history).await?;
            let meant = entries.into_iter().filter(|entry| (*from..=*upto).contains(&entry.number));
            Told::Said(meant.filter_map(recalled).collect())
        }
        Request::Resume(which) => resume(shared, asking, which).await?,
        Request::Lives => {
            let here = SearchScope::Conversation(asking.key.clone());
            Told::Text(listed(&store.lives(&here, None, LISTED).await?, &asking.life, &rules))
        }
        Request::Search(words) => {
            let within = reach(&shared.operator_accounts, &asking.key, &asking.from);
            let wanted = Wanted { spoken: SPOKEN.into(), ..Wanted::new(within, words, FOUND) };
            Told::Text(found(&store.search(&wanted).await?, &rules))
        }
        Request::History { last } => {
            let last = usize::from(*last);
            let entries = store.history(&asking.life, last * LOOKED_THROUGH).await?;
            Told::Text(history(&entries, last))
        }
        Request::Platforms => Told::Text(platforms(shared)),
        Request::Platform { account, pause } => {
            let by = who_asks(asking);
            let found =
                AccountId::new(account.as_str()).ok().and_then(|id| shared.accounts.get(&id));
            Told::Text(match found {
                Some(found) if !pausing::is_theirs(shared, asking, &found) => {
                    pausing::refusal(account, *pause)
                }
                Some(found) => {
                    let done = pausing::order(shared, &found.id, *pause, &by).await;
                    pausing::sentence(done, account, *pause)
                }
                None => {
                    let none = Err(PauseError::NoAccount(account.clone()));
                    pausing::sentence(none, account, *pause)
                }
            })
        }
        Request::SetHome => said(set_home(shared, asking).await),
        Request::Reload => said(steward.reload(&who_asks(asking)).await),
        Request::Restart => match steward.restart().await {
            // The next process answers; this one has nothing more to say.
            Ok(()) => std::future::pending().await,
            Err(refusal) => Told::Text(refusal),
        },
        Request::Run(name) => said(steward.run(name).await),
        Request::Speak(text) => crate::speaking::speak(shared, &asking.at, text).await,
        Request::Pair { account, wish } => pair(shared, asking, account.as_deref(), wish).await?,
    })
}

/// Who asks, where the operator knows them by name.
fn person(shared: &Shared, asking: &Asking) -> Option<Arc<Person>> {
    shared.accounts.get(&asking.at.account)?.person(&asking.from.id)
}

/// Lets somebody in: on the account of the chat, or on the one that the operator names.
async fn pair(
    shared: &Arc<Shared>,
    asking: &Asking,
    account: Option<&str>,
    wish: &PairWish,
) -> Result<Told, StoreError> {
    let named = account.unwrap_or(asking.key.account.as_str());
    let found = AccountId::new(named).ok().and_then(|id| shared.accounts.get(&id));
    let Some(account) = found.filter(|account| account.is_platforms()) else {
        let named = match Code::read(named) {
            // Who leaves the account out, or names it behind the code, has said the code here.
            Some(_) => "That".to_owned(),
            None => format!("`{}`", one_line(named)),
        };
        return Ok(Told::Text(format!("{named} is not an account on which people can be let in.")));
    };
    let name = who_asks(asking);
    // On the account that it is about, it is somebody whom the account has made an administrator.
    let admin = (asking.at.account == account.id)
        .then(|| Issuer { sender: asking.from.id.clone(), roles: asking.roles.clone() });
    let done = pairing::wish(shared, &account, wish, Wisher { name: &name, admin }).await;
    let code = match &done {
        Ok(Paired::Code(code)) => Some(code.clone()),
        _ => None,
    };
    let text = pairing::sentence(done, &account.id, shared.clock.now())?;
    Ok(match code {
        Some(code) => Told::Code { text, code },
        None => Told::Text(text),
    })
}

/// Who asks, as the record names them.
fn who_asks(asking: &Asking) -> String {
    format!("{}:{}", asking.key.account, asking.from.id)
}

/// Makes the chat the home of its account. That is where messages go by the account's name, so nothing is changed
/// that is not recorded: the record comes first, and says so where nothing came of it.
async fn set_home(shared: &Shared, asking: &Asking) -> Result<String, String> {
    let chat = &asking.at.chat.id;
    let record = async |detail: String| {
        let audited = Audited {
            actor: who_asks(asking),
            deed: AuditDeed::SettingsChanged,
            subject: asking.at.account.to_string(),
            detail,
        };
        shared.store.audit(shared.clock.now(), vec![audited]).await
    };
    if let Err(error) = record(format!("home: {chat}")).await {
        tracing::warn!(%error, "a home cannot be recorded");
        return Err("I could not record that, so the home stays where it was.".to_owned());
    }
    if let Err(refusal) = shared.steward.set_home(&asking.at).await {
        if let Err(error) = record(format!("home: not {chat}, which could not be kept")).await {
            tracing::warn!(%error, "that a home was not changed cannot be recorded");
        }
        return Err(refusal);
    }
    Ok(HOME.to_owned())
}

/// What a home is good for.
const HOME: &str = "This chat is the home of its account. The agent is told so in every conversation \
                    that begins from now on.";

/// The life that a person means: a number of the list, else a name. What is not theirs is not there.
async fn resume(shared: &Shared, asking: &Asking, which: &str) -> Result<Told, StoreError> {
    let rules = shared.rules_for(&asking.key);
    let here = SearchScope::Conversation(asking.key.clone());
    let by_number = match which.trim_start_matches('#').parse::<usize>() {
        Ok(number) if (1..=LISTED).contains(&number) => {
            shared.store.lives(&here, None, LISTED).await?.into_iter().nth(number - 1)
        }
        _ => None,
    };
    let named = match by_number {
        Some(life) => Named::One(Box::new(life)),
        // Where others read along, nobody's other conversations are brought before them.
        None if asking.key.kind != ChatKind::Dm => shared.store.named(&here, which, LISTED).await?,
        None => {
            let theirs = SearchScope::Owner(asking.owner.clone());
            shared.store.named(&theirs, which, LISTED).await?
        }
    };
    Ok(match named {
        Named::One(life) if life.owner != asking.owner => nothing_named(which),
        Named::One(life) if life.past.id == asking.life => {
            Told::Text("That is the conversation you are in.".into())
        }
        Named::One(life) if life.key == asking.key => Told::Life(Box::new(life.past)),
        Named::One(life) => Told::Elsewhere(Box::new(life.past)),
        Named::Several(lives) => {
            let lines: Vec<String> =
                lives.iter().map(|life| format!("- {}", line(life, &rules))).collect();
            Told::Text(format!(
                "Which of these do you mean? `/resume ID` goes back to one.\n\n{}",
                lines.join("\n")
            ))
        }
        Named::Nothing => nothing_named(which),
    })
}

fn nothing_named(which: &str) -> Told {
    Told::Text(format!(
        "You have no conversation called `{}`. `/sessions` lists them.",
        one_line(which)
    ))
}

fn models(names: &[String]) -> String {
    match names {
        [] => "There is one model here, and it answers.".into(),
        [usual, others @ ..] => {
            let mut text = format!("`{usual}` answers unless you choose another.");
            for name in others {
                let _ = write!(text, "\n- `{name}`");
            }
            text
        }
    }
}

fn recalled(entry: Entry) -> Option<Recalled> {
    match entry.body {
        EntryBody::Said { from, text, files, heard, message, forwarded } => {
            let message = Message { id: message, text, files, forwarded, ..Message::default() };
            Some(Recalled { from, message, heard })
        }
        _ => None,
    }
}

fn listed(lives: &[Life], present: &SessionId, rules: &Rules) -> String {
    if lives.is_empty() {
        return "There is no earlier conversation here.".into();
    }
    let numbered = |(place, life): (usize, &Life)| {
        let here = if life.past.id == *present { " — you are here" } else { "" };
        format!("{}. {}{here}", place + 1, line(life, rules))
    };
    let lines: Vec<String> = lives.iter().enumerate().map(numbered).collect();
    format!("{}\n\n`/resume NUMBER` goes back to one.", lines.join("\n"))
}

fn line(life: &Life, rules: &Rules) -> String {
    let Past { id, title, turns, active, .. } = &life.past;
    let title = if title.is_empty() { "(no title)" } else { title };
    let turns = if *turns == 1 { "one turn".into() } else { format!("{turns} turns") };
    format!("{} — {turns}, {}, `{id}`", one_line(title), day(*active, rules))
}

fn found(found: &[Found], rules: &Rules) -> String {
    let lines: Vec<String> = found
        .iter()
        .map(|found| {
            let excerpt = found.excerpt.replace(['\u{2}', '\u{3}'], "**");
            let title = if found.title.is_empty() { "(no title)" } else { &found.title };
            format!(
                "- {}, {}: {}",
                day(found.recorded.entry.at, rules),
                one_line(title),
                one_line(&excerpt)
            )
        })
        .collect();
    if lines.is_empty() { "Nothing was found.".into() } else { lines.join("\n") }
}

fn history(entries: &[Entry], last: usize) -> String {
    let seen: Vec<String> = entries.iter().filter_map(spoken).collect();
    match seen.len() {
        0 => "Nothing has been said here yet.".into(),
        count => seen[count.saturating_sub(last)..].join("\n\n"),
    }
}

/// Who told something that was said, and whose words they are where they are not theirs.
pub(crate) fn teller(from: &Sender, forwarded: Option<&Author>) -> String {
    let from = from.name.as_deref().unwrap_or(from.id.as_str());
    match forwarded {
        None => from.to_owned(),
        Some(Author::Us) => format!("{from}, passing on the agent's words"),
        Some(Author::Named(name)) => format!("{from}, passing on words of {name}"),
        Some(Author::Unknown) => format!("{from}, passing on somebody's words"),
    }
}

/// What people saw of an entry, with who said it.
fn spoken(entry: &Entry) -> Option<String> {
    let (who, text) = match &entry.body {
        EntryBody::Said { from, text, forwarded, .. } => (teller(from, forwarded.as_ref()), text),
        EntryBody::Answered { text, sent: Some(_), .. } => ("Agent".into(), text),
        _ => return None,
    };
    (!text.trim().is_empty()).then(|| format!("**{}**: {}", one_line(&who), one_line(text)))
}

fn platforms(shared: &Shared) -> String {
    let line = |status: accounts::AccountStatus| {
        let state = match status.state {
            AccountState::Connecting => "connecting".into(),
            AccountState::Connected => "connected".into(),
            AccountState::Waiting { reason } => format!("not connected: {reason}"),
            AccountState::Deaf { reason } => format!("deaf, being connected anew: {reason}"),
            AccountState::Unproven { reason } => {
                format!("connected, not known to be heard: {reason}")
            }
            AccountState::Paused => "paused; `/platforms resume` lets it go on".into(),
            AccountState::Contested { problem, hint }
            | AccountState::Refused { problem, hint }
            | AccountState::Fatal { problem, hint } => format!("{problem}; {hint}"),
        };
        let mute = match status.mute {
            Some(mute) => format!("; nothing gets through: {}", mute.why),
            None => String::new(),
        };
        format!("- {} ({}): {state}{mute}", status.id, status.platform)
    };
    accounts::statuses(shared).into_iter().map(line).collect::<Vec<_>>().join("\n")
}

fn day(at: Timestamp, rules: &Rules) -> String {
    rules.local(at).chars().take(10).collect()
}

/// Cut to one line that cannot break the list it stands in.
fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(EXCERPT) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None => line,
    }
}

/// What a person may be shown where they speak. In a chat with others that is what was said in it:
/// nobody else is to read what they said elsewhere. What runs beside a conversation looks into that.
pub(crate) fn reach(
    operator_accounts: &[AccountId],
    key: &SessionKey,
    from: &Sender,
) -> SearchScope {
    if operator_accounts.contains(&key.account) {
        return SearchScope::Accounts(operator_accounts.to_vec());
    }
    match key.kind {
        ChatKind::Dm => SearchScope::Owner(Owner::Person {
            account: key.account.clone(),
            person: from.lasting().clone(),
        }),
        _ => SearchScope::Conversation(key.main()),
    }
}
