//! The store contract: what has to survive the process, and the only ways to change it.
//!
//! A store keeps the journal, sessions, transcripts and the outbox. It decides nothing: it makes
//! what was decided durable, all of it or nothing, and answers questions. It knows no platform, no
//! agent and no clock.
#![forbid(unsafe_code)]

mod audit;
mod commit;
pub mod contract;
mod files;
mod guests;
mod history;
mod lives;
mod memory;
mod outbox;
mod progress;
mod query;
mod reading;
mod trace;

use async_trait::async_trait;
use talaria_model::{
    AccountId, Address, Digest, Entry, FileId, Grant, Inbound, MessageId, Outbound, OutboundId,
    Seq, SessionId, Timestamp,
};
use talaria_session::budget::{Day, Payer, Spent};
use talaria_session::{Ended, Session, SessionKey};

pub use audit::{AuditDeed, AuditRow, Audited, broken_at};
pub use commit::{
    Admitted, Branch, Commit, Delivered, Dropped, JournalChange, JournalState, Retirement, Rewind,
    Spending,
};
pub use files::{Use, files_of_act, files_of_entry, files_of_inbound};
pub use guests::{GuestChange, Guests, Swap};
pub use history::{History, Walk};
pub use lives::{
    Fit, Life, Name, Named, Owner, Presence, Reading, Rewound, Totals, is_spared, may_expire,
    remembered, spared_until, without,
};
pub use memory::MemoryStore;
pub use outbox::{
    Crossing, Failed, Leave, Parcel, ParcelState, Settlement, Told, Untold, withdrawn,
};
pub use progress::{Doubt, Form, Progress, Stage};
pub use query::{Closeness, Hit, Part, Query, fold, pairs, stands_alone, visible, words};
pub use reading::{
    Counts, Found, Kept, Queue, Queues, Recorded, SearchScope, Spoken, Summary, Wanted,
};
pub use trace::{
    Asked, Clue, Coverage, LOOKED_AT, MOST_LOOKED_AT, Sent, Traced, Trail, UNANSWERED, Unanswered,
    deliveries, head, letters_about, message_of,
};

/// How much can be approved for good. The oldest goes first.
pub const MOST_GRANTS: usize = 1_000;

/// What has to survive. Every method that writes returns once the write is on disk.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Journals a batch together with the account's cursor, in one commit. An event that is already
    /// there is reported as such and changes nothing; the cursor moves all the same. A batch without
    /// a cursor leaves it where it was. Of a conversation from which nothing was ever let in, nothing
    /// but its denied rows is kept.
    async fn admit(&self, delivered: Delivered) -> Result<Vec<Admitted>, StoreError>;

    /// Puts what is known of an event by now in the place of what arrived: files that were fetched for
    /// it, or what those who watch made of it. A row that a step has taken, that is not there or that was
    /// not let in stays as it is.
    async fn amend(&self, seq: Seq, inbound: &Inbound) -> Result<(), StoreError>;

    /// Says that nobody answers a row after all, and why, and keeps this much of it. A row that a step has
    /// taken, that is not there or that was not let in stays as it is.
    async fn ignore(&self, seq: Seq, inbound: &Inbound, reason: &str) -> Result<(), StoreError>;

    /// Says that these rows are not let in after all, and why: who said them was put out before a step
    /// took them. A row that a step has taken stays as it is.
    async fn deny(&self, rows: &[Seq], reason: &str) -> Result<(), StoreError>;

    /// Who asks to be let in on an account and who was.
    async fn guests(&self, account: &AccountId) -> Result<Guests, StoreError>;

    /// Changes that, together with what people are told of it and what is recorded of it; all of it, or
    /// nothing where somebody else has changed it since it was read.
    async fn keep_guests(&self, change: GuestChange) -> Result<Swap, StoreError>;

    /// Adds to the record of who was let in and what was changed. Nothing is ever taken out of it.
    async fn audit(&self, at: Timestamp, audited: Vec<Audited>) -> Result<(), StoreError>;

    /// The record, oldest first, beginning after a row.
    async fn audited(&self, after: u64, limit: usize) -> Result<Vec<AuditRow>, StoreError>;

    /// Where the account's last batch ended.
    async fn cursor(&self, account: &AccountId) -> Result<Option<String>, StoreError>;

    /// The session, if there is one. Its rules are the default; the caller sets them.
    async fn load(&self, key: &SessionKey) -> Result<Option<Session>, StoreError>;

    /// Makes one step of a session durable: its state, journal changes, lives, entries and parcels.
    /// Words that it conceals are gone from the journal with it.
    ///
    /// With a step that leaves the session without a turn in hand, previews of its lives named here
    /// that no text replaced have served their purpose and end.
    ///
    /// A delivery is decided as a whole: previews of it that none of the parcels here replaces become
    /// [`withdrawn`] behind them.
    ///
    /// A change to a row that was forgotten or not let in and a parcel that is there already change
    /// nothing. A life that belongs to another conversation, a branch off another owner's life or off
    /// none, and a branch to a life that has begun are refused as damage, and nothing is written.
    async fn commit(&self, commit: Commit) -> Result<(), StoreError>;

    /// Journal rows of a session that no step has taken yet, in order.
    async fn unread(
        &self,
        key: &SessionKey,
        limit: usize,
    ) -> Result<Vec<(Seq, Inbound)>, StoreError>;

    /// What an agent reads of one life: its newest entries that were not taken back, oldest first. The
    /// newest summary stands where what it sums up stood, and counts as one of them; it is never left
    /// out.
    async fn history(&self, session: &SessionId, limit: usize) -> Result<Vec<Entry>, StoreError>;

    /// Names a preview that is about to be posted. Its delivery's final text will replace it. It is
    /// no parcel until then; once the text is there, it changes nothing.
    async fn preview(&self, outbound: &Outbound) -> Result<(), StoreError>;

    /// Says that a parcel is about to leave, and is told whether it may. Must be durable before its
    /// first byte does. What is not there or has ended is left alone.
    async fn attempt(&self, id: &OutboundId) -> Result<Leave, StoreError>;

    /// Says what became of a parcel or preview. `Progress` is the table of what follows; what is not
    /// there or has ended is left alone. With its end, a parcel with confidential content loses it:
    /// no read gives it back, and no row has it; and `at` is kept as the moment of it.
    async fn settle(
        &self,
        id: &OutboundId,
        settlement: Settlement,
        at: Timestamp,
    ) -> Result<(), StoreError>;

    /// The message that shows a parcel, where the platform has it and told.
    async fn shown(&self, id: &OutboundId) -> Result<Option<MessageId>, StoreError>;

    /// When all parts of something that was said had been delivered, and when a row came in.
    async fn crossing(&self, said: &OutboundId, row: Seq) -> Result<Crossing, StoreError>;

    /// By what this was approved for good, if it was and that is not revoked.
    async fn granted(&self, digest: &Digest) -> Result<Option<Grant>, StoreError>;

    /// What was approved for good, the newest first.
    async fn grants(&self, limit: usize) -> Result<Vec<Grant>, StoreError>;

    /// Takes back what was approved for good; says whether it was there.
    async fn revoke_grant(&self, digest: &Digest) -> Result<bool, StoreError>;

    /// What somebody spent in a day.
    async fn spent(&self, day: Day, payer: &Payer) -> Result<Spent, StoreError>;

    /// Who spent how much in a day, in the order of `Payer`.
    async fn spending(&self, day: Day, limit: usize) -> Result<Vec<(Payer, Spent)>, StoreError>;

    /// Forgets what was spent before a day; says of how many.
    async fn forget_spending(&self, before: Day) -> Result<u64, StoreError>;

    /// What still has to be delivered to an address, in the order in which it was decided. What is
    /// leaving is among it; previews are not.
    async fn parcels(&self, to: &Address, limit: usize) -> Result<Vec<Parcel>, StoreError>;

    /// Parcels that will never be delivered and that are not forgotten yet, the newest first.
    async fn failed(&self, limit: usize) -> Result<Vec<Failed>, StoreError>;

    /// What was not delivered to an address without anybody there having been told.
    async fn untold(&self, to: &Address) -> Result<Option<Untold>, StoreError>;

    /// Addresses where something is untold.
    async fn untold_at(
        &self,
        after: Option<Address>,
        limit: usize,
    ) -> Result<Vec<Address>, StoreError>;

    /// Decides a notice that tells its address of all that was not delivered there. Together with it
    /// all of that becomes told; nobody is ever told that the notice itself did not arrive. One that
    /// is there already changes nothing.
    async fn tell(&self, notice: &Outbound, at: Timestamp) -> Result<(), StoreError>;

    /// When rows of an account arrived that were not let in, since then and not forgotten yet, the
    /// oldest first.
    async fn denied(
        &self,
        account: &AccountId,
        since: Timestamp,
        limit: usize,
    ) -> Result<Vec<Timestamp>, StoreError>;

    /// What each of these files is kept for, in the order in which they are named.
    async fn uses(&self, files: &[FileId]) -> Result<Vec<Use>, StoreError>;

    /// Begins a life of the process: what was on its way is unsure from here on. Says how the life
    /// before ended; a store that was never opened ended cleanly.
    async fn recover(&self) -> Result<Ended, StoreError>;

    /// Sessions with something to do: a turn in hand, something waiting, or something unread.
    async fn restless(
        &self,
        after: Option<SessionKey>,
        limit: usize,
    ) -> Result<Vec<SessionKey>, StoreError>;

    /// Addresses with something to deliver.
    async fn undelivered(
        &self,
        after: Option<Address>,
        limit: usize,
    ) -> Result<Vec<Address>, StoreError>;

    /// Says that the process ends because it was asked to.
    async fn close(&self) -> Result<(), StoreError>;

    /// Conversations of an account, or of all, the most recently used first.
    async fn conversations(
        &self,
        account: Option<&AccountId>,
        limit: usize,
    ) -> Result<Vec<Summary>, StoreError>;

    /// The newest entries of a conversation over all its lives that were not taken back and stand
    /// before `before`, oldest first. What a branch has in common with another life is there once.
    async fn transcript(
        &self,
        key: &SessionKey,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Recorded>, StoreError>;

    /// Entries that contain all the words, or the text as a substring, best first and newest first
    /// among equals. `Query` says what answers. What was taken back does not.
    async fn search(&self, wanted: &Wanted) -> Result<Vec<Found>, StoreError>;

    /// One life of a conversation.
    async fn life(&self, id: &SessionId) -> Result<Option<Life>, StoreError>;

    /// The lives of conversations, the most recently used first, beginning after one of them.
    async fn lives(
        &self,
        scope: &SearchScope,
        after: Option<&SessionId>,
        limit: usize,
    ) -> Result<Vec<Life>, StoreError>;

    /// The life that a person means by a name: its id, its title, or the beginning of one of them.
    /// Only what fits best is meant, and only what is in the scope.
    async fn named(
        &self,
        scope: &SearchScope,
        name: &str,
        limit: usize,
    ) -> Result<Named, StoreError>;

    /// Gives a life another title. A life that its conversation is in is given one by a step of its
    /// session, while a gateway runs: this would be overwritten.
    async fn rename(&self, life: &SessionId, title: &str) -> Result<(), StoreError>;

    /// How much was used, by lives in which something happened since.
    async fn totals(
        &self,
        scope: &SearchScope,
        since: Option<Timestamp>,
    ) -> Result<Totals, StoreError>;

    /// Sessions in which something was said at this time or later.
    async fn active_since(
        &self,
        since: Timestamp,
        after: Option<SessionKey>,
        limit: usize,
    ) -> Result<Vec<SessionKey>, StoreError>;

    /// Sessions that may be over by their reset policy: nothing was said in them since, nothing is to
    /// be done in them, and they were not put away.
    async fn quiet_since(
        &self,
        since: Timestamp,
        after: Option<SessionKey>,
        limit: usize,
    ) -> Result<Vec<SessionKey>, StoreError>;

    /// Says that a life is about to be put away, and is told how often that was said of it.
    async fn put_away(&self, life: &SessionId) -> Result<u32, StoreError>;

    /// The entries of one life, oldest first, beginning after a position; what it has in common with
    /// the life it is a branch of is among them.
    async fn entries(
        &self,
        life: &SessionId,
        reading: Reading,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Kept>, StoreError>;

    /// What was taken back in a life, oldest first.
    async fn rewinds(&self, life: &SessionId) -> Result<Vec<Rewound>, StoreError>;

    /// Everything that is written down about the events that a clue leads to, the newest first. Takes long
    /// for a large store: nobody waits for it but whoever asks.
    async fn trace(&self, clue: &Clue, limit: usize) -> Result<Vec<Traced>, StoreError>;

    /// Keeps what was not answered and is not in the journal: the newest `UNANSWERED` of each account.
    async fn keep_unanswered(&self, rows: Vec<Unanswered>) -> Result<(), StoreError>;

    /// What is kept of that and a clue leads to, the newest first.
    async fn unanswered(&self, clue: &Clue, limit: usize) -> Result<Vec<Unanswered>, StoreError>;

    /// How much of everything there is.
    async fn counts(&self) -> Result<Counts, StoreError>;

    /// What waits, and since when.
    async fn queues(&self) -> Result<Queues, StoreError>;

    /// Forgets journal rows that arrived and parcels that were decided before `before` and have
    /// ended since, and what was not answered before it; says how many. Entries stay. Time is taken to pass as rows arrive: what stands
    /// behind a jump of the clock is forgotten with what stands before it.
    async fn prune(&self, before: Timestamp) -> Result<u64, StoreError>;

    /// Forgets lives in which nothing was said since, with all that was recorded in them; says how
    /// many. Those stay that others are branches of, whose session is spared (`is_spared`) or in
    /// `spare`, and to whose conversation something is still to be read or delivered.
    async fn forget_lives(&self, since: Timestamp, spare: &[SessionKey])
    -> Result<u64, StoreError>;

    /// Forgets entries that were recorded before; says how many. Those of a life with a turn in hand
    /// stay. Time is taken to pass as entries are recorded.
    async fn forget_entries(&self, before: Timestamp) -> Result<u64, StoreError>;

    /// Gives room that was freed by forgetting back to the disk, a little at a time; says how many
    /// bytes.
    async fn shrink(&self) -> Result<u64, StoreError>;
}

/// Why a store did not do it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Nothing was written; trying again may help: the disk is full or busy.
    #[error("the store cannot write at the moment: {reason}")]
    Unavailable {
        /// What stands in the way.
        reason: String,
    },
    /// The store holds something it cannot read. A human has to look.
    #[error("the store is damaged: {reason}")]
    Damaged {
        /// What was found.
        reason: String,
    },
}
