//! A step's effects as one write.

use sha2::{Digest as _, Sha256};
use talaria_model::{Act, Address, Consent, Content, Digest, Edits, Outbound, SenderId};
use talaria_platform::lower;
use talaria_session::{Attest, Attested, Closed, Effect, Replacement, Session};
use talaria_store::{
    AuditDeed, Audited, Branch, Commit, Dropped, JournalChange, JournalState, Retirement, Rewind,
};

use crate::delivery::with_room_for_mark;
use crate::shared::Shared;

/// What has to be durable before the effects of a step happen.
pub(crate) fn of(shared: &Shared, next: &Session, effects: &[Effect]) -> Commit {
    let mut commit = Commit::of(next.clone(), next.updated);
    for effect in effects {
        match effect.clone() {
            Effect::Take(seq) => {
                commit.journal.push(JournalChange { seq, state: JournalState::Taken });
            }
            Effect::Bind { seq, turn } => {
                commit.journal.push(JournalChange { seq, state: JournalState::Bound(turn) });
            }
            Effect::Close { seq, closed } => {
                let state = match closed {
                    Closed::Handled => JournalState::Handled,
                    Closed::Ignored(why) => JournalState::Ignored(why.to_owned()),
                    Closed::Denied(why) => JournalState::Denied(why.to_owned()),
                    Closed::Quarantined(why) => JournalState::Quarantined(why.to_owned()),
                };
                commit.journal.push(JournalChange { seq, state });
            }
            Effect::Conceal { seq, words } => commit.concealed.push((seq, words)),
            Effect::Forward { seq, to } => commit.forwarded.push((seq, to)),
            Effect::DropUnread { before, why } => {
                commit.dropped = Some(Dropped { before, reason: why.to_owned() });
            }
            Effect::Record { session, entry } => commit.entries.push((session, entry)),
            Effect::Rewind { session, from, upto, by } => {
                commit.rewinds.push(Rewind { session, from, upto, by: Some(by) });
            }
            Effect::Branch { from, to, upto } => commit.branch = Some(Branch { from, to, upto }),
            Effect::Retire { past, why } => commit.retired = Some(Retirement { past: *past, why }),
            Effect::Send(outbound) => {
                commit.audited.extend(sent(next, &outbound));
                commit.outbox.extend(parts(shared, outbound));
            }
            Effect::Post(outbound) => {
                // Lowered here and not when it is sent, so that every part of an answer is durable,
                // under its own id, in the commit that ends the turn.
                commit.outbox.extend(parts(shared, outbound));
            }
            Effect::Replace(replacement) => {
                commit.outbox.extend(replacing(shared, *replacement));
            }
            Effect::Grant(grant) => commit.grants.push(*grant),
            Effect::Attest(attested) => commit.audited.push(audited(*attested)),
            Effect::Start(_)
            | Effect::Tell { .. }
            | Effect::Abandon(_)
            | Effect::Ask { .. }
            | Effect::Pass { .. } => {}
        }
    }
    commit
}

/// Something said, as its platform takes it.
pub(crate) fn parts(shared: &Shared, outbound: Outbound) -> Vec<Outbound> {
    let can = shared.capabilities(&outbound.to);
    let replies = shared.manner(&outbound.to).replies;
    let mut parts = lower(outbound, &with_room_for_mark(can));
    replies.mark(&mut parts);
    parts
}

/// A row of the record: for whom, where to, and which words exactly, but not the words.
fn sent(next: &Session, outbound: &Outbound) -> Option<Audited> {
    let hand = next.hand()?;
    let Act::Post(Content { text, .. }) = &outbound.act else { return None };
    let Address { account, chat, .. } = &outbound.to;
    let digest = Digest::new(Sha256::digest(text.as_bytes()).into());
    Some(Audited {
        actor: format!("{}:{}", hand.to.account, hand.from.id),
        deed: AuditDeed::MessageSent,
        subject: format!("{account}/{}", chat.id),
        detail: format!("{} {digest}", outbound.id),
    })
}

/// A row of the record: who, and what exactly by its digest, but not what was said.
fn audited(attested: Attested) -> Audited {
    let Attested { what, requester, account, tool, digest } = attested;
    let principal = |sender: &SenderId| format!("{account}:{sender}");
    let gateway = || "gateway".to_owned();
    let (deed, actor, how) = match &what {
        Attest::Asked => (AuditDeed::ApprovalAsked, principal(&requester), ""),
        Attest::Unasked(Some(Consent::Once)) => {
            (AuditDeed::Approved, gateway(), ", unasked: nobody has to be asked")
        }
        Attest::Unasked(Some(Consent::Session)) => {
            (AuditDeed::Approved, gateway(), ", unasked: approved before for the conversation")
        }
        Attest::Unasked(Some(Consent::Always)) => {
            (AuditDeed::Approved, gateway(), ", unasked: approved before for good")
        }
        Attest::Unasked(None) => (AuditDeed::Denied, gateway(), ", unasked"),
        Attest::Approved(Consent::Once, by) => (AuditDeed::Approved, principal(by), ", once"),
        Attest::Approved(Consent::Session, by) => {
            (AuditDeed::Approved, principal(by), ", for the conversation")
        }
        Attest::Approved(Consent::Always, by) => (AuditDeed::Approved, principal(by), ", for good"),
        Attest::Denied(by) => (AuditDeed::Denied, principal(by), ""),
        Attest::Forbidden(by) => (AuditDeed::Denied, principal(by), ", by policy"),
        Attest::Expired => (AuditDeed::Denied, gateway(), ", nobody answered"),
        Attest::Changed => (AuditDeed::Denied, gateway(), ", it changed"),
        Attest::Stopped => (AuditDeed::Denied, gateway(), ", the turn was stopped"),
    };
    let detail = format!("{tool} {digest}{how}");
    Audited { actor, deed, subject: principal(&requester), detail }
}

/// What takes the place of something said before: one message where messages can be changed, else a word
/// about it. Which message that is, delivery knows once it has gone out.
fn replacing(shared: &Shared, replacement: Replacement) -> Vec<Outbound> {
    let Replacement { id, to, of, whole, otherwise } = replacement;
    let can = with_room_for_mark(shared.capabilities(&to));
    let said = |content: Content| {
        lower(Outbound { id: id.clone(), to: to.clone(), act: Act::Post(content) }, &can)
    };
    let mut whole = said(whole);
    match whole.as_mut_slice() {
        [Outbound { act: Act::Post(content), .. }] if can.edits != Edits::Never => {
            content.replaces = Some(of);
            whole
        }
        _ => said(otherwise),
    }
}
