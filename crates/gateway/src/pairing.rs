//! Lets people in who are not listed, and puts them out again: carries out what `session::pairing`
//! decides. Whatever is decided is durable, with its answer and its record, before anybody hears of it.

use std::sync::Arc;

use talaria_model::{
    AccountId, Act, Address, Content, Outbound, OutboundId, SenderId, SessionId, Timestamp,
    WITHHELD,
};
use talaria_session::pairing::{
    ASKED_LATELY, Chance, Code, GuestBook, Issuer, PairingRequest, Refusal,
};
use talaria_session::{PairWish, Reach};
use talaria_store::{AuditDeed, Audited, GuestChange, Guests, Store, StoreError, Swap};

use crate::accounts::ConnectedAccount;
use crate::commits;
use crate::shared::Shared;

/// Where randomness comes from.
pub type Entropy = Arc<dyn Fn(&mut [u8]) + Send + Sync>;

/// How often it is tried to change a book that somebody else changes at the same time.
const TRIES: u32 = 16;

/// What came of a wish about who is let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Paired {
    /// A code to hand on.
    Code(Code),
    /// Somebody was let in.
    LetIn {
        /// Who.
        sender: SenderId,
        /// As they call themselves.
        name: Option<String>,
        /// Where they are heard.
        reach: Reach,
    },
    /// Who asks and who was let in.
    Book(Box<GuestBook>),
    /// Somebody was put out.
    PutOut(SenderId),
    /// Nobody of that id was let in.
    NoGuest,
    /// So many requests and codes were forgotten, and no lockout is on.
    Cleared(usize),
}

/// Why a wish about who is let in is not carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PairError {
    /// The rules say no.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// There is no such account, or nobody else can write to it.
    #[error("{0} is not an account on which people can be let in")]
    NoAccount(String),
    /// The store does not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A change to a book, and what is written with it.
pub(crate) struct Edit<T> {
    pub(crate) answer: T,
    pub(crate) outbox: Vec<Outbound>,
    pub(crate) audited: Vec<Audited>,
}

impl<T> Edit<T> {
    pub(crate) fn of(answer: T) -> Self {
        Self { answer, outbox: Vec::new(), audited: Vec::new() }
    }
}

/// Who wishes something about who is let in.
#[derive(Clone)]
pub(crate) struct Wisher<'a> {
    /// As the record names them.
    pub(crate) name: &'a str,
    /// The administrator of the account; none where it is the operator.
    pub(crate) admin: Option<Issuer>,
}

impl<'a> Wisher<'a> {
    pub(crate) const fn operator(name: &'a str) -> Self {
        Self { name, admin: None }
    }
}

/// Carries out a wish of the operator on a store, whether a gateway runs or not. Also returns the book as it is
/// then, and what has to be delivered.
pub async fn carry_out(
    store: &dyn Store,
    account: &AccountId,
    wish: &PairWish,
    by: &str,
    chance: Chance,
    now: Timestamp,
) -> Result<(Paired, Guests, Vec<Outbound>), PairError> {
    let by = Wisher::operator(by);
    let edit = |book: &mut GuestBook| wished(book, account, wish, by.clone(), chance, now);
    let (answer, guests, outbox) = swap(store, account, now, edit).await?;
    Ok((answer?, guests, outbox))
}

fn wished(
    book: &mut GuestBook,
    account: &AccountId,
    wish: &PairWish,
    Wisher { name: by, admin }: Wisher<'_>,
    chance: Chance,
    now: Timestamp,
) -> Edit<Result<Paired, Refusal>> {
    let audited = |deed, subject: String, detail: &str| Audited {
        actor: by.to_owned(),
        deed,
        subject,
        detail: detail.to_owned(),
    };
    let whole = account.to_string();
    let was_locked = book.locked_until(now).is_some();
    match wish {
        PairWish::List => Edit::of(Ok(Paired::Book(Box::new(book.clone())))),
        PairWish::Issue(reach) => match book.issue_for(admin, *reach, by, chance, now) {
            Ok(code) => Edit {
                audited: vec![audited(AuditDeed::CodeIssued, whole, told(*reach))],
                ..Edit::of(Ok(Paired::Code(code)))
            },
            Err(refusal) => Edit::of(Err(refusal)),
        },
        PairWish::Approve(typed, reach) => match book.approve(typed.expose(), *reach, by, now) {
            Ok(request) => {
                let subject = principal(account, &request.sender);
                let detail = format!("approved, {}", told(*reach));
                let PairingRequest { sender, name, at, .. } = request;
                Edit {
                    answer: Ok(Paired::LetIn { sender, name, reach: *reach }),
                    outbox: vec![letter(PAIRING, chance, at, Content::text(WELCOME))],
                    audited: vec![audited(AuditDeed::LetIn, subject, &detail)],
                }
            }
            Err(refusal) => {
                // What is refused while it is locked is no news.
                let locks = !was_locked && book.locked_until(now).is_some();
                let detail = "too many mistyped codes";
                let record = audited(AuditDeed::LockedOut, whole, detail);
                Edit {
                    audited: if locks { vec![record] } else { Vec::new() },
                    ..Edit::of(Err(refusal))
                }
            }
        },
        PairWish::Revoke(sender) => {
            let found = SenderId::new(sender.as_str()).ok().filter(|id| book.revoke(id).is_some());
            match found {
                Some(sender) => Edit {
                    audited: vec![audited(AuditDeed::PutOut, principal(account, &sender), "")],
                    ..Edit::of(Ok(Paired::PutOut(sender)))
                },
                None => Edit::of(Ok(Paired::NoGuest)),
            }
        }
        PairWish::Clear => {
            let many = book.clear(now);
            let mut detail = cleared(many);
            if was_locked {
                detail.push_str("; the lockout is over");
            }
            let is_news = many > 0 || was_locked;
            let record = || audited(AuditDeed::CodesCleared, whole, &detail);
            Edit {
                audited: is_news.then(record).into_iter().collect(),
                ..Edit::of(Ok(Paired::Cleared(many)))
            }
        }
    }
}

/// Changes the book of an account. A change that changes nothing is not written.
pub(crate) async fn swap<T>(
    store: &dyn Store,
    account: &AccountId,
    at: Timestamp,
    edit: impl Fn(&mut GuestBook) -> Edit<T>,
) -> Result<(T, Guests, Vec<Outbound>), StoreError> {
    for _ in 0..TRIES {
        let Guests { revision, book: before } = store.guests(account).await?;
        let mut book = before.clone();
        let Edit { answer, outbox, audited } = edit(&mut book);
        if book == before && outbox.is_empty() && audited.is_empty() {
            return Ok((answer, Guests { revision, book }, Vec::new()));
        }
        let change = GuestChange {
            account: account.clone(),
            read: revision,
            book: book.clone(),
            outbox: outbox.clone(),
            audited,
            at,
        };
        if store.keep_guests(change).await? == Swap::Done {
            return Ok((answer, Guests { revision: revision + 1, book }, outbox));
        }
    }
    Err(StoreError::Unavailable { reason: "others change who is let in all the time".into() })
}

/// Carries out a wish while the gateway runs. It holds from the next event on.
pub(crate) async fn wish(
    shared: &Arc<Shared>,
    account: &ConnectedAccount,
    wish: &PairWish,
    by: Wisher<'_>,
) -> Result<Paired, PairError> {
    let _one_at_a_time = account.pairing.lock().await;
    let (store, now, chance) = (shared.store.as_ref(), shared.clock.now(), chance(shared));
    let edit = |book: &mut GuestBook| match refused(account, wish, by.admin.as_ref()) {
        Some(refusal) => Edit::of(Err(refusal)),
        None => wished(book, &account.id, wish, by.clone(), chance, now),
    };
    match swap(store, &account.id, now, edit).await {
        Ok((Ok(paired), guests, outbox)) => {
            account.set_guests(guests);
            crate::chats::offer(shared, outbox, None);
            Ok(paired)
        }
        Ok((Err(refusal), guests, _)) => {
            account.set_guests(guests);
            Err(refusal.into())
        }
        Err(error) => {
            read_again(shared, account).await;
            Err(error.into())
        }
    }
}

/// Why an administrator may not wish that at this moment.
fn refused(account: &ConnectedAccount, wish: &PairWish, admin: Option<&Issuer>) -> Option<Refusal> {
    let may_let_in = |reach| admin.is_none_or(|admin| account.may_let_in(admin, reach));
    match reach(wish) {
        _ if !may_let_in(Reach::Direct) => Some(Refusal::NotYours),
        Some(reach) if !may_let_in(reach) => Some(Refusal::NotThatFar),
        Some(_) | None => None,
    }
}

/// Where whoever comes in by a wish is heard.
const fn reach(wish: &PairWish) -> Option<Reach> {
    match wish {
        PairWish::Issue(reach) | PairWish::Approve(_, reach) => Some(*reach),
        PairWish::List | PairWish::Revoke(_) | PairWish::Clear => None,
    }
}

/// Says something outside of any conversation. It is durable when this returns.
pub(crate) async fn post(
    shared: &Arc<Shared>,
    to: Address,
    text: String,
) -> Result<(), StoreError> {
    let id = to.account.clone();
    let account = shared.accounts.get(&id);
    let _one_at_a_time = match &account {
        Some(account) => Some(account.pairing.lock().await),
        None => None,
    };
    let parts = commits::parts(shared, letter(NOTICE, chance(shared), to, Content::text(text)));
    // Written with a guest book that stays as it is: what stands in the outbox of no session has no other
    // place to be written with.
    let edit = |_: &mut GuestBook| Edit { outbox: parts.clone(), ..Edit::of(()) };
    let now = shared.clock.now();
    let ((), guests, outbox) = swap(shared.store.as_ref(), &id, now, edit).await?;
    if let Some(account) = &account {
        account.set_guests(guests);
    }
    crate::chats::offer(shared, outbox, None);
    Ok(())
}

/// Forgets the codes that were handed on by administrators who could not make them any more.
pub(crate) fn void_codes(account: &ConnectedAccount, book: &mut GuestBook) {
    book.void(|issuer, reach| account.may_let_in(issuer, reach));
}

/// Takes up what the store knows. Where it does not answer, what was known stays.
pub(crate) async fn read_again(shared: &Shared, account: &ConnectedAccount) {
    if let Ok(guests) = shared.store.guests(&account.id).await {
        account.set_guests(guests);
    }
}

pub(crate) fn chance(shared: &Shared) -> Chance {
    let mut chance = [0; 32];
    (shared.entropy)(&mut chance);
    Chance(chance)
}

/// What a person is told who has been let in.
pub(crate) const WELCOME: &str = "Paired! You are let in; say what you need.";

/// How the ids of what is said about pairing begin where no row led to it.
pub(crate) const PAIRING: &str = "pairing_";

/// How the ids of what is said to the operator outside of any conversation begin.
const NOTICE: &str = "notice_";

/// Something said outside of any conversation. How its id begins tells what it is about.
pub(crate) fn letter(about: &str, Chance(chance): Chance, to: Address, said: Content) -> Outbound {
    let name: String = chance[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    let session = SessionId::new(format!("{about}{name}")).expect("digits are an id");
    let id = OutboundId { session, delivery: 1, part: 0 };
    Outbound { id, to, act: Act::Post(said) }
}

pub(crate) fn principal(account: &AccountId, sender: &SenderId) -> String {
    format!("{account}:{sender}")
}

const fn told(reach: Reach) -> &'static str {
    match reach {
        Reach::Direct => "in direct chats",
        Reach::Everywhere => "everywhere",
    }
}

/// As it is recorded how many requests and codes were forgotten.
fn cleared(many: usize) -> String {
    match many {
        0 => "nothing was open".to_owned(),
        1 => "one request or code".to_owned(),
        many => format!("{many} requests and codes"),
    }
}

/// What came of a wish, for the person who had it. A code is withheld: whoever tells it puts it in.
pub(crate) fn sentence(
    done: Result<Paired, PairError>,
    account: &AccountId,
    now: Timestamp,
) -> Result<String, StoreError> {
    let shown = |name: &Option<String>| match name {
        Some(name) => format!(" ({})", talaria_render::literal(name)),
        None => String::new(),
    };
    Ok(match done {
        Ok(Paired::Code(_)) => format!(
            "Pairing code: `{WITHHELD}`. Hand it on: whoever says it to me on `{account}` first, in a direct \
             chat and within the hour, is let in."
        ),
        Ok(Paired::LetIn { sender, name, reach }) => {
            format!("`{sender}`{} is let in on `{account}`, {}.", shown(&name), told(reach))
        }
        Ok(Paired::PutOut(sender)) => {
            format!(
                "`{sender}` is not heard on `{account}` any more, unless a list names them. {ASKED_LATELY}"
            )
        }
        Ok(Paired::NoGuest) => format!("Nobody of that id was let in on `{account}` by pairing."),
        Ok(Paired::Cleared(0)) => {
            "No request or code is open, and pairing is not locked.".to_owned()
        }
        Ok(Paired::Cleared(1)) => {
            format!("One request or code is void, and pairing is not locked. {ASKED_LATELY}")
        }
        Ok(Paired::Cleared(many)) => {
            format!("{many} requests and codes are void, and pairing is not locked. {ASKED_LATELY}")
        }
        Ok(Paired::Book(book)) => {
            let mut lines = Vec::new();
            for request in book.requests(now) {
                lines.push(format!("- `{}`{} asks", request.sender, shown(&request.name)));
            }
            for issued in book.issued(now) {
                lines.push(format!("- a code of {} is out", talaria_render::literal(&issued.by)));
            }
            for (sender, grant) in book.guests() {
                let line =
                    format!("- `{sender}`{} is heard {}", shown(&grant.name), told(grant.reach));
                lines.push(line);
            }
            match lines.is_empty() {
                true => format!("Nobody asks to be let in on `{account}`, and nobody was."),
                false => lines.join("\n"),
            }
        }
        Err(PairError::Refused(refusal)) => {
            let sentence = refusal.to_string();
            let mut letters = sentence.chars();
            let first = letters.next().map(|first| first.to_uppercase().to_string());
            format!("{}{}.", first.unwrap_or_default(), letters.as_str())
        }
        Err(error @ PairError::NoAccount(_)) => format!("{error}."),
        Err(PairError::Store(error)) => return Err(error),
    })
}
