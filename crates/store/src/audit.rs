//! The record of who was let in and what was changed: rows that are only ever added, each with a digest
//! of the one before, so that a row that was changed or taken out is noticed.
//!
//! It says who did what to whom, and never what was said.

use sha2::{Digest, Sha256};
use talaria_model::Timestamp;

/// Something that is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audited {
    /// Who did it, and from where.
    pub actor: String,
    /// What was done.
    pub deed: AuditDeed,
    /// To whom or what.
    pub subject: String,
    /// What else matters.
    pub detail: String,
}

/// What is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditDeed {
    /// Somebody was let in.
    LetIn,
    /// Somebody was put out.
    PutOut,
    /// A code was made to hand on.
    CodeIssued,
    /// Requests and codes were forgotten.
    CodesCleared,
    /// Too many wrong codes: nobody is let in for a while.
    LockedOut,
    /// The configuration was read again and differs.
    SettingsChanged,
    /// Conversations were forgotten.
    SessionsForgotten,
    /// A conversation was exported.
    SessionExported,
    /// A person was asked whether something may be done.
    ApprovalAsked,
    /// Somebody approved it.
    Approved,
    /// It was denied, by whom or by what.
    Denied,
    /// What was approved for good was taken back.
    ApprovalRevoked,
    /// A message left for another chat than the one in which it was asked for.
    MessageSent,
    /// Somebody has proved to be the operator.
    LoggedIn,
    /// Too many tried to and could not: they are not listened to for a while.
    LoginsRefused,
    /// Every login was ended.
    LoggedOut,
    /// A backup took the place of what was there.
    WentBack,
}

impl AuditDeed {
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::LetIn,
        Self::PutOut,
        Self::CodeIssued,
        Self::CodesCleared,
        Self::LockedOut,
        Self::SettingsChanged,
        Self::SessionsForgotten,
        Self::SessionExported,
        Self::ApprovalAsked,
        Self::Approved,
        Self::Denied,
        Self::ApprovalRevoked,
        Self::MessageSent,
        Self::LoggedIn,
        Self::LoginsRefused,
        Self::LoggedOut,
        Self::WentBack,
    ];

    /// As it is kept and printed.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LetIn => "let_in",
            Self::PutOut => "put_out",
            Self::CodeIssued => "code_issued",
            Self::CodesCleared => "codes_cleared",
            Self::LockedOut => "locked_out",
            Self::SettingsChanged => "settings_changed",
            Self::SessionsForgotten => "sessions_forgotten",
            Self::SessionExported => "session_exported",
            Self::ApprovalAsked => "approval_asked",
            Self::Approved => "approved",
            Self::Denied => "denied",
            Self::ApprovalRevoked => "approval_revoked",
            Self::MessageSent => "message_sent",
            Self::LoggedIn => "logged_in",
            Self::LoginsRefused => "logins_refused",
            Self::LoggedOut => "logged_out",
            Self::WentBack => "went_back",
        }
    }

    /// The one that is kept like this.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|deed| deed.as_str() == name)
    }
}

/// A row of the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditRow {
    /// Its place, from one on.
    pub seq: u64,
    /// When.
    pub at: Timestamp,
    /// What.
    pub audited: Audited,
    /// The digest of the row before; of the first, that of nothing.
    pub previous: String,
    /// The digest of this row and the one before.
    pub hash: String,
}

impl AuditRow {
    /// The row that follows one.
    pub fn after(last: Option<(u64, &str)>, at: Timestamp, audited: Audited) -> Self {
        let (seq, previous) = match last {
            Some((seq, hash)) => (seq + 1, hash.to_owned()),
            None => (1, hex(&Sha256::digest(b""))),
        };
        let hash = digest(seq, at, &audited, &previous);
        Self { seq, at, audited, previous, hash }
    }

    /// Whether it says of itself and of the row before what is true.
    fn follows(&self, last: Option<&Self>) -> bool {
        let last = last.map(|last| (last.seq, last.hash.as_str()));
        *self == Self::after(last, self.at, self.audited.clone())
    }
}

/// The first row that was changed, or before which one was taken out. `last` is the row before the
/// first of these.
pub fn broken_at(last: Option<&AuditRow>, rows: &[AuditRow]) -> Option<u64> {
    let before = std::iter::once(last).chain(rows.iter().map(Some));
    let mut pairs = rows.iter().zip(before);
    pairs.find(|(row, last)| !row.follows(*last)).map(|(row, _)| row.seq)
}

fn digest(seq: u64, at: Timestamp, audited: &Audited, previous: &str) -> String {
    let Audited { actor, deed, subject, detail } = audited;
    let mut digest = Sha256::new().chain_update(previous);
    digest.update(seq.to_be_bytes());
    digest.update(at.as_millis().to_be_bytes());
    // Each with its length, so that nothing can be moved from one to the next.
    for text in [actor, deed.as_str(), subject, detail] {
        digest.update((text.len() as u64).to_be_bytes());
        digest.update(text);
    }
    hex(&digest.finalize())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<AuditRow> {
        let mut rows: Vec<AuditRow> = Vec::new();
        for n in 1..=4 {
            let audited = Audited {
                actor: "op".into(),
                deed: AuditDeed::LetIn,
                subject: format!("bot:{n}"),
                detail: String::new(),
            };
            let last = rows.last().map(|row| (row.seq, row.hash.as_str()));
            let row = AuditRow::after(last, Timestamp::from_millis(n), audited);
            rows.push(row);
        }
        rows
    }

    #[test]
    fn whatever_is_changed_is_noticed() {
        assert_eq!(broken_at(None, &rows()), None);
        assert_eq!(broken_at(Some(&rows()[1]), &rows()[2..]), None);
        let change = |place: usize, change: fn(&mut AuditRow)| {
            let mut rows = rows();
            change(&mut rows[place]);
            broken_at(None, &rows)
        };
        assert_eq!(change(1, |row| row.audited.subject = "bot:9".into()), Some(2));
        assert_eq!(change(1, |row| row.audited.actor = "no".into()), Some(2));
        assert_eq!(change(1, |row| row.audited.deed = AuditDeed::PutOut), Some(2));
        assert_eq!(change(1, |row| row.audited.detail = "x".into()), Some(2));
        assert_eq!(change(1, |row| row.at = Timestamp::from_millis(9)), Some(2));
        assert_eq!(change(0, |row| row.seq = 7), Some(7));
        assert_eq!(change(3, |row| row.hash = row.previous.clone()), Some(4));
        let mut moved = rows();
        moved[2].audited.actor = "opb".into();
        moved[2].audited.subject = moved[2].audited.subject[1..].into();
        assert_eq!(broken_at(None, &moved), Some(3));
        let mut shorter = rows();
        shorter.remove(1);
        assert_eq!(broken_at(None, &shorter), Some(3));
        shorter.remove(0);
        assert_eq!(broken_at(None, &shorter), Some(3));
    }

    #[test]
    fn every_deed_has_a_name_of_its_own() {
        for deed in AuditDeed::ALL {
            assert_eq!(AuditDeed::named(deed.as_str()), Some(deed));
        }
        assert_eq!(AuditDeed::named("else"), None);
    }
}
