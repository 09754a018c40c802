//! Strangers wait at the door, so that nobody else waits for them: whether somebody is let in takes a
//! commit, and anybody can ask for one.
//!
//! Whoever attends to the door takes everybody who stands there together, and goes when nobody does.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use talaria_model::{Content, Inbound, InboundKind, Outbound, SenderId, Seq, Timestamp};
use talaria_session::Rule;
use talaria_session::pairing::{Answer, Chance, GuestBook, Silence};
use talaria_store::{AuditDeed, Audited, letters_about};

use crate::accounts::ConnectedAccount;
use crate::commits;
use crate::glimpses::Unwritten;
use crate::intake;
use crate::pairing::{self, Edit, PAIRING, WELCOME, chance, letter, principal};
use crate::scrutiny;
use crate::shared::Shared;
use crate::tasks::calm;

/// How many strangers are asked about at once, so that those who are let in are asked about, too.
const ASKED_AT_ONCE: usize = 2;

/// How many wait at once. Who comes then is not answered, and may come again.
const MOST_WAITING: usize = 256;

/// What a person is told who has to come again.
const FULL: &str = "Too many people ask to be let in at the moment. Try again in an hour.";

/// Those who wait at the door of an account.
#[derive(Default)]
pub(crate) struct Door {
    /// Those whom who watches has a say in.
    asked_about: Line,
    /// Those about whom we decide.
    known: Line,
}

#[derive(Default)]
struct Line(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    knocks: VecDeque<Knock>,
    /// How many attend to it.
    attendants: usize,
}

/// Somebody at the door.
pub(crate) enum Knock {
    /// Who is not let in and has said something in a direct chat, perhaps as this row.
    Stranger(Option<Seq>, Box<Inbound>),
    /// Who comes for the first time and is let in by a list. It is recorded once for each of them; what
    /// cannot be written is tried with the next thing they say.
    Listed(SenderId, Rule),
}

impl Door {
    /// Whether somebody waits, or is being attended to.
    pub(crate) fn is_busy(&self) -> bool {
        self.asked_about.lock().attendants + self.known.lock().attendants > 0
    }
}

impl Line {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stands in the line, where there is room, and says whether somebody more has to attend to it.
    fn stand(&self, knock: Knock, most: usize) -> Result<Attended, Knock> {
        let mut waiting = self.lock();
        if waiting.knocks.len() >= MOST_WAITING {
            return Err(knock);
        }
        waiting.knocks.push_back(knock);
        if waiting.attendants >= most {
            return Ok(Attended::Yes);
        }
        waiting.attendants += 1;
        Ok(Attended::NotYet)
    }

    /// Who is first. Whoever asked attends to the line no more where nobody is.
    fn next(&self) -> Option<Knock> {
        let mut waiting = self.lock();
        let next = waiting.knocks.pop_front();
        waiting.attendants -= usize::from(next.is_none());
        next
    }

    /// All who wait, in the same way.
    fn all(&self) -> Vec<Knock> {
        let mut waiting = self.lock();
        waiting.attendants -= usize::from(waiting.knocks.is_empty());
        waiting.knocks.drain(..).collect()
    }
}

/// Whether enough attend to a line.
enum Attended {
    Yes,
    NotYet,
}

/// Goes on without waiting for what becomes of it.
pub(crate) fn knock(shared: &Arc<Shared>, account: &Arc<ConnectedAccount>, knock: Knock) {
    if let Knock::Stranger(_, inbound) = &knock {
        if let Some(why) = unheard(shared, account, inbound) {
            return unanswered(shared, account, inbound, why.into());
        }
        if scrutiny::minds_stranger(shared, account, inbound) {
            return match account.door.asked_about.stand(knock, ASKED_AT_ONCE) {
                Ok(Attended::Yes) => {}
                Ok(Attended::NotYet) => {
                    shared.tasks.spawn(inquire(shared.clone(), account.clone()));
                }
                Err(knock) => turn_away(shared, account, &knock),
            };
        }
    }
    stand(shared, account, knock);
}

/// Why nothing comes of what a stranger says, if nothing does.
fn unheard(shared: &Shared, account: &ConnectedAccount, inbound: &Inbound) -> Option<&'static str> {
    account.silence_for(inbound, shared.clock.now()).map(quiet)
}

/// Lets somebody wait about whom only we decide.
fn stand(shared: &Arc<Shared>, account: &Arc<ConnectedAccount>, knock: Knock) {
    match account.door.known.stand(knock, 1) {
        Ok(Attended::Yes) => {}
        Ok(Attended::NotYet) => {
            shared.tasks.spawn(attend(shared.clone(), account.clone()));
        }
        Err(knock) => turn_away(shared, account, &knock),
    }
}

fn turn_away(shared: &Shared, account: &ConnectedAccount, knock: &Knock) {
    if let Knock::Stranger(_, inbound) = knock {
        unanswered(shared, account, inbound, "too many ask".into());
    }
}

/// Nobody answers a stranger. Who watches is told of one whom it was to be asked about.
fn unanswered(
    shared: &Shared,
    account: &ConnectedAccount,
    inbound: &Inbound,
    why: Cow<'static, str>,
) {
    if scrutiny::minds_stranger(shared, account, inbound) {
        scrutiny::tell(shared, account, inbound);
    }
    shared.glimpses.catch(inbound, shared.clock.now(), Unwritten::Knocked(why));
}

/// Asks about strangers, one after the other. Several do, so that one over whom somebody thinks for long
/// keeps few others waiting.
async fn inquire(shared: Arc<Shared>, account: Arc<ConnectedAccount>) {
    while let Some(knock) = account.door.asked_about.next() {
        if calm(ask_about(&shared, &account, knock)).await.is_err() {
            tracing::error!(account = %account.id, "who asks at the door panicked");
        }
    }
}

async fn ask_about(shared: &Arc<Shared>, account: &Arc<ConnectedAccount>, knock: Knock) {
    let Knock::Stranger(row, mut inbound) = knock else { return stand(shared, account, knock) };
    // Whoever says much while they wait is answered once, and costs one question.
    if let Some(why) = unheard(shared, account, &inbound) {
        return unanswered(shared, account, &inbound, why.into());
    }
    let came = match scrutiny::ask_about_stranger(shared, account, &mut inbound).await {
        Some(why) => format!("is ignored: {why}").into(),
        // Another text may ask for something else.
        None if !intake::knocks(&account.authority(&inbound), &inbound) => "is ignored".into(),
        None => return stand(shared, account, Knock::Stranger(row, inbound)),
    };
    shared.glimpses.catch(&inbound, shared.clock.now(), Unwritten::Knocked(came));
}

async fn attend(shared: Arc<Shared>, account: Arc<ConnectedAccount>) {
    loop {
        let knocks = account.door.known.all();
        if knocks.is_empty() {
            return;
        }
        if calm(open(&shared, &account, &knocks)).await.is_err() {
            tracing::error!(account = %account.id, "who attends to the door panicked");
        }
    }
}

/// Decides about all of them in one commit.
async fn open(shared: &Arc<Shared>, account: &ConnectedAccount, knocks: &[Knock]) {
    let _one_at_a_time = account.pairing.lock().await;
    let now = shared.clock.now();
    let knocks: Vec<(&Knock, Chance)> =
        knocks.iter().map(|knock| (knock, chance(shared))).collect();
    let edit = |book: &mut GuestBook| {
        let mut whole = Edit::of(Vec::new());
        for (knock, chance) in &knocks {
            let one = hear(shared, account, book, knock, *chance, now);
            whole.answer.push(one.answer);
            whole.outbox.extend(one.outbox);
            whole.audited.extend(one.audited);
        }
        whole
    };
    match pairing::swap(shared.store.as_ref(), &account.id, now, edit).await {
        Ok((answers, guests, outbox)) => {
            for ((knock, _), answer) in knocks.iter().zip(answers) {
                if let (Knock::Stranger(_, inbound), Some(answer)) = (knock, answer) {
                    let (came, sender) = (came(&answer), &inbound.from.id);
                    tracing::info!(account = %account.id, %sender, came, "not known");
                    shared.glimpses.catch(inbound, now, Unwritten::Knocked(came.into()));
                }
            }
            account.set_guests(guests);
            crate::chats::offer(shared, outbox, None);
        }
        Err(error) => {
            tracing::warn!(account = %account.id, %error, "nobody can be let in at the moment");
            pairing::read_again(shared, account).await;
            // What the store denies it may have written all the same.
            for (knock, _) in knocks {
                if let Knock::Stranger(_, inbound) = knock {
                    crate::chats::look(shared, inbound.to.clone());
                }
            }
        }
    }
}

fn hear(
    shared: &Shared,
    account: &ConnectedAccount,
    book: &mut GuestBook,
    knock: &Knock,
    chance: Chance,
    now: Timestamp,
) -> Edit<Option<Answer>> {
    let id = &account.id;
    match knock {
        Knock::Listed(sender, rule) => {
            let record = || Audited {
                actor: "configuration".to_owned(),
                deed: AuditDeed::LetIn,
                subject: principal(id, sender),
                detail: rule.reason().to_owned(),
            };
            Edit { audited: book.meet(sender).then(record).into_iter().collect(), ..Edit::of(None) }
        }
        Knock::Stranger(row, inbound) => {
            let InboundKind::Said(message) = &inbound.kind else { return Edit::of(None) };
            let (from, to) = (&inbound.from, &inbound.to);
            // A code may have let them in while this waited.
            if book.reach(&from.id).is_some() {
                return Edit::of(None);
            }
            pairing::void_codes(account, book);
            let answer = book.said((from, to), &message.text, account.strangers(), chance, now);
            let say = |said: Content| -> Vec<Outbound> {
                let about = row.map_or(PAIRING.to_owned(), letters_about);
                commits::parts(shared, letter(&about, chance, to.clone(), said))
            };
            let stranger = principal(id, &from.id);
            let record = |deed, actor: &str, detail: &str| {
                vec![Audited {
                    actor: actor.to_owned(),
                    deed,
                    subject: stranger.clone(),
                    detail: detail.to_owned(),
                }]
            };
            let (outbox, audited) = match &answer {
                Answer::Code(code) => {
                    let code = code.expose();
                    let text = format!(
                        "I do not know you yet. Your pairing code is `{code}`; it is good for an hour. \
                         The operator of this gateway lets you in with\n\n`talaria pair approve {id} {code}`"
                    );
                    (say(Content::confidential(text)), Vec::new())
                }
                Answer::Full => (say(Content::text(FULL)), Vec::new()),
                Answer::LetIn(grant) => {
                    let detail = "said a code that was handed on";
                    (say(Content::text(WELCOME)), record(AuditDeed::LetIn, &grant.by, detail))
                }
                Answer::Silence(Silence::Void) => {
                    let detail = "too many wrong codes: all that were out are void";
                    (Vec::new(), record(AuditDeed::LockedOut, &stranger, detail))
                }
                Answer::Silence(_) => (Vec::new(), Vec::new()),
            };
            Edit { answer: Some(answer), outbox, audited }
        }
    }
}

const fn came(answer: &Answer) -> &'static str {
    match answer {
        Answer::Code(_) => "was given a code",
        Answer::Full => "too many ask",
        Answer::LetIn(_) => "is let in",
        Answer::Silence(silence) => quiet(*silence),
    }
}

const fn quiet(silence: Silence) -> &'static str {
    match silence {
        Silence::Unwelcome => "is ignored",
        Silence::Lately | Silence::Crowded => "was answered lately",
        Silence::Locked | Silence::Barred => "is locked out",
        Silence::Wrong => "said a wrong code",
        Silence::Void => "said one wrong code too many",
    }
}
