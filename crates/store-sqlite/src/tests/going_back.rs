//! What a copy must not bring back.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use talaria_model::{
    Approval, Approver, CallId, Digest, EarlierYes, Giver, Grant, Lasting, Question, Sender,
    SenderId, Timestamp,
};
use talaria_session::pairing::{Chance, GuestBook, Refusal};
use talaria_session::{ApprovedHere, Ended, Phase, Reach, Session, SessionKey, Strangers};
use talaria_store::{
    AuditDeed, AuditRow, Audited, Commit, GuestChange, ParcelState, Store, Swap, broken_at,
};
use tempfile::TempDir;

use super::recorded::recorded;
use super::{address, at, hand, key, post, session};
use crate::{Going, Since, SqliteStore, WentBack, copy, go_back_to, schema};

const TAKEN: &str = "2026-11-15T09:30:00Z";

const GOING: Going<'static> =
    Going { by: "operator", taken: TAKEN, listed: &[], at: Timestamp::from_millis(10_000) };

/// A store in use, and a copy of it as it was once.
struct Place {
    folder: TempDir,
    store: SqliteStore,
}

impl Place {
    fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        let store = SqliteStore::open(folder.path()).expect("opens");
        Self { folder, store }
    }

    fn copied(&self) -> TempDir {
        let to = TempDir::new().expect("a folder");
        copy(self.folder.path(), &state(to.path())).expect("copies");
        to
    }

    /// Goes back to a copy, which is then a store of its own.
    fn back_to(&self, copy: &TempDir) -> (WentBack, SqliteStore) {
        back(copy, self.folder.path())
    }

    /// Changes a guest book, as a gateway would.
    async fn change<T>(&self, account: &str, change: impl FnOnce(&mut GuestBook) -> T) -> T {
        let account = key(account, "c").account;
        let kept = self.store.guests(&account).await.expect("reads");
        let mut book = kept.book;
        let came = change(&mut book);
        let audited = vec![audited(AuditDeed::SettingsChanged)];
        let (read, outbox) = (kept.revision, Vec::new());
        let change = GuestChange { account, read, book, outbox, audited, at: at(3_000) };
        assert_eq!(self.store.keep_guests(change).await, Ok(Swap::Done));
        came
    }

    async fn lets_in(&self, account: &str, who: &'static str) {
        self.change(account, |book| {
            let code = book.issue(Reach::Everywhere, "op", Chance([7; 32]), at(2_000));
            let code = code.expect("issues").expose().to_owned();
            let sender = Sender::new(SenderId::literal(who));
            let place = address(&key(account, who));
            book.said((&sender, &place), &code, Strangers::Pair, Chance([8; 32]), at(2_001));
            assert!(book.reach(&sender.id).is_some(), "{who} is let in");
        })
        .await;
    }

    async fn puts_out(&self, account: &str, who: &'static str) {
        let who = SenderId::literal(who);
        assert!(self.change(account, |book| book.revoke(&who)).await.is_some());
    }

    async fn grants(&self, numbers: &[u8]) {
        let grants = numbers.iter().map(|number| grant(*number)).collect();
        let step = Commit::of(session(&key("bot", "grants")), at(1));
        self.store.commit(Commit { grants, ..step }).await.expect("commits");
    }
}

fn state(folder: &Path) -> PathBuf {
    folder.join("state.db")
}

fn back(copy: &TempDir, present: &Path) -> (WentBack, SqliteStore) {
    let went = go_back_to(&state(copy.path()), present, GOING).expect("gets ready");
    let names: Vec<_> = fs::read_dir(copy.path()).expect("reads").flatten().collect();
    assert_eq!(names.len(), 1, "one file: {names:?}");
    (went, SqliteStore::open(copy.path()).expect("opens"))
}

fn audited(deed: AuditDeed) -> Audited {
    let (subject, detail) = ("x".to_owned(), String::new());
    Audited { actor: "operator".into(), deed, subject, detail }
}

fn grant(number: u8) -> Grant {
    Grant {
        digest: Digest::new([number; 32]),
        tool: "run_program".into(),
        account: key("bot", "c").account,
        sender: SenderId::literal("ann"),
        by: Giver::known_by_id(SenderId::literal("ann")),
        shown: "May I?".into(),
        at: at(5),
    }
}

async fn guests(store: &SqliteStore, account: &str) -> Vec<String> {
    let kept = store.guests(&key(account, "c").account).await.expect("reads");
    kept.book.guests().map(|(sender, _)| sender.to_string()).collect()
}

async fn record(store: &SqliteStore) -> Vec<AuditRow> {
    let rows = store.audited(0, 10_000).await.expect("reads");
    assert_eq!(broken_at(None, &rows), None, "the record follows from its beginning");
    rows
}

/// What was recorded about going back.
fn told(rows: &[AuditRow]) -> Vec<(AuditDeed, &str)> {
    let began = rows.iter().position(|row| row.audited.deed == AuditDeed::WentBack);
    let rows = &rows[began.expect("it is recorded")..];
    rows.iter().map(|row| (row.audited.deed, row.audited.subject.as_str())).collect()
}

/// A session that asks whether something may be done, and was allowed something else.
fn asking(key: &SessionKey) -> Session {
    let mut session = session(key);
    let approval = Approval {
        handle: "0".repeat(32),
        digest: Digest::new([1; 32]),
        tool: "pay".into(),
        lasting: Lasting::Never,
        earlier: EarlierYes::Counts,
        approver: Approver::default(),
    };
    session.phase = Phase::Asking {
        hand: hand(&session),
        question: Question {
            call: CallId::literal("call"),
            text: "May I?".into(),
            choices: approval.choices(),
            approval: Some(Box::new(approval)),
        },
        since: at(1),
        expires: at(1_000_000),
        sent: None,
    };
    session
}

#[tokio::test]
async fn what_a_copy_had_to_deliver_is_unsure_when_it_is_gone_back_to() {
    let place = Place::new();
    let session = session(&key("bot", "c"));
    let letter = post(&session.id, &address(&session.key), 1, 0);
    let commit = Commit { outbox: vec![letter.clone()], ..Commit::of(session, at(1)) };
    place.store.commit(commit).await.expect("commits");
    place.store.close().await.expect("closes");
    let copy = place.copied();
    let (_, store) = place.back_to(&copy);
    assert_eq!(store.recover().await.expect("recovers"), Ended::Abruptly);
    let parcels = store.parcels(&letter.to, 10).await.expect("reads");
    let states: Vec<ParcelState> = parcels.iter().map(|parcel| parcel.state).collect();
    assert_eq!(states, [ParcelState::Unsure]);
}

#[tokio::test]
async fn no_code_and_no_yes_that_is_open_in_a_copy_counts() {
    let place = Place::new();
    let code = place
        .change("bot", |book| book.issue(Reach::Direct, "op", Chance([1; 32]), at(9_000)))
        .await
        .expect("issues");
    let asks = asking(&key("bot", "asks"));
    let mut allows = session(&key("bot", "allows"));
    let by = Giver::known_by_id(SenderId::literal("ann"));
    let here = |number| ApprovedHere { digest: Digest::new([number; 32]), by: by.clone() };
    allows.approved = vec![here(2), here(3)];
    for session in [&asks, &allows] {
        place.store.commit(Commit::of(session.clone(), at(1))).await.expect("commits");
    }
    let copy = place.copied();
    let (went, store) = place.back_to(&copy);
    assert_eq!((went.codes, went.approvals, went.asked_again), (1, 1, 2));
    assert_eq!(went.since, Since::Known);

    let mut book = store.guests(&asks.key.account).await.expect("reads").book;
    let refused = book.approve(code.expose(), Reach::Direct, "op", at(9_500));
    assert!(matches!(refused, Err(Refusal::NoSuchCode { .. })), "{refused:?}");
    assert_eq!(book.issued(at(9_500)).count(), 0);
    let load = async |key| store.load(key).await.expect("loads").expect("is there");
    let Phase::Asking { expires, .. } = load(&asks.key).await.phase else { panic!("it asks") };
    assert!(expires <= at(1), "its time is over: {expires:?}");
    assert!(load(&allows.key).await.approved.is_empty());
    let restless = store.restless(None, 10).await.expect("reads");
    assert_eq!(restless, [asks.key], "it is taken up, and hears that nobody answered");
}

#[tokio::test]
async fn who_was_put_out_since_and_what_was_taken_back_stay_so() {
    let place = Place::new();
    for who in ["ann", "ben"] {
        place.lets_in("bot", who).await;
    }
    place.grants(&[1, 2]).await;
    let copy = place.copied();
    place.puts_out("bot", "ann").await;
    place.lets_in("bot", "cleo").await;
    assert!(place.store.revoke_grant(&grant(1).digest).await.expect("revokes"));
    place.grants(&[3]).await;

    let before = record(&place.store).await;
    let (went, store) = place.back_to(&copy);
    assert_eq!((went.put_out.as_slice(), went.let_in.len()), (&["bot:ann".to_owned()][..], 0));
    assert_eq!(went.asked_again, 1);
    assert_eq!(guests(&store, "bot").await, ["ben"]);
    let granted = [1, 2, 3].map(|number| grant(number).digest);
    let mut held = Vec::new();
    for digest in &granted {
        held.push(store.granted(digest).await.expect("reads").is_some());
    }
    assert_eq!(held, [false, true, false], "only what both approve");

    let after = record(&store).await;
    assert_eq!(after[..before.len()], before, "nothing that was recorded since is lost");
    let taken = format!("backup of {TAKEN}");
    let expected = [(AuditDeed::WentBack, taken.as_str()), (AuditDeed::PutOut, "bot:ann")];
    assert_eq!(told(&after), expected);
}

#[tokio::test]
async fn going_back_again_brings_nobody_back_either() {
    let place = Place::new();
    place.lets_in("bot", "ann").await;
    let (first, second) = (place.copied(), place.copied());
    place.puts_out("bot", "ann").await;
    let (_, store) = place.back_to(&first);
    let before = record(&store).await;
    drop(store);
    let (went, store) = back(&second, first.path());
    assert_eq!((went.since, went.put_out), (Since::Known, vec!["bot:ann".to_owned()]));
    assert!(guests(&store, "bot").await.is_empty());
    assert_eq!(record(&store).await[..before.len()], before, "both times are recorded");
}

#[tokio::test]
async fn where_it_is_not_known_what_happened_since_that_is_said_and_recorded() {
    let place = Place::new();
    place.lets_in("bot", "ann").await;
    place.grants(&[1]).await;
    let nothing = TempDir::new().expect("a folder");
    let destroyed = TempDir::new().expect("a folder");
    fs::write(state(destroyed.path()), "destroyed").expect("writes");
    let anothers = TempDir::new().expect("a folder");
    drop(SqliteStore::open(anothers.path()).expect("opens"));
    let later = TempDir::new().expect("a folder");
    copy(place.folder.path(), &state(later.path())).expect("copies");
    let conn = Connection::open(state(later.path())).expect("opens");
    conn.pragma_update(None, "user_version", schema() + 1).expect("sets");
    drop(conn);
    for (present, why) in [
        (&nothing, "no database here"),
        (&destroyed, "not a database"),
        (&anothers, "did not grow out of the same one"),
        (&later, "knows versions up to"),
    ] {
        let copy = place.copied();
        let (went, store) = back(&copy, present.path());
        let Since::Unknown(said) = &went.since else { panic!("{why}: it is known") };
        assert!(said.contains(why), "{said}");
        assert_eq!((went.let_in, went.put_out), (vec!["bot:ann".to_owned()], Vec::new()));
        assert_eq!(guests(&store, "bot").await, ["ann"], "people are not locked out: {why}");
        assert_eq!(went.asked_again, 1);
        assert_eq!(store.granted(&grant(1).digest).await, Ok(None), "{why}");
        let rows = record(&store).await;
        assert_eq!(told(&rows)[1..], [(AuditDeed::LetIn, "bot:ann")], "{why}");
        let detail = &rows[rows.len() - 2].audited.detail;
        assert!(detail.contains("is not known") && detail.contains(why), "{detail}");
    }
}

#[tokio::test]
async fn a_lock_that_is_in_force_holds_even_on_an_account_that_the_copy_does_not_know() {
    let place = Place::new();
    place.lets_in("bot", "ann").await;
    let copy = place.copied();
    for account in ["bot", "other"] {
        place
            .change(account, |book| {
                for _ in 0..5 {
                    let _ = book.approve("AAAAAAAA", Reach::Direct, "op", at(9_000));
                }
                assert!(book.locked_until(at(9_001)).is_some());
            })
            .await;
    }
    let (_, store) = place.back_to(&copy);
    for account in ["bot", "other"] {
        let book = store.guests(&key(account, "c").account).await.expect("reads").book;
        assert!(book.locked_until(at(10_001)).is_some(), "{account}");
    }
}

#[tokio::test]
async fn a_record_that_does_not_follow_is_left_and_keeps_nobody_from_going_back() {
    let place = Place::new();
    place.lets_in("bot", "ann").await;
    let copy = place.copied();
    place.puts_out("bot", "ann").await;
    let Place { folder, store } = place;
    drop(store);
    let conn = Connection::open(state(folder.path())).expect("opens");
    let changed = "DROP TRIGGER audit_is_not_changed; UPDATE audit SET subject = 'y'";
    conn.execute_batch(changed).expect("changes");
    drop(conn);
    let (went, store) = back(&copy, folder.path());
    assert_eq!((went.since, went.put_out.len()), (Since::Known, 1));
    let rows = record(&store).await;
    assert_eq!(rows.len(), 3, "one of the copy and two of going back");
    let detail = &rows[1].audited.detail;
    assert!(detail.contains("not all that was recorded since follows"), "{detail}");
}

#[tokio::test]
async fn who_comes_back_by_a_list_is_recorded() {
    let place = Place::new();
    let copy = place.copied();
    let listed = ["bot:dora".to_owned()];
    let going = Going { listed: &listed, ..GOING };
    go_back_to(&state(copy.path()), place.folder.path(), going).expect("gets ready");
    let store = SqliteStore::open(copy.path()).expect("opens");
    assert_eq!(told(&record(&store).await)[1..], [(AuditDeed::LetIn, "bot:dora")]);
}

#[tokio::test]
async fn a_copy_of_every_version_can_be_gone_back_to() {
    for (version, sql) in recorded() {
        let made = TempDir::new().expect("a folder");
        let conn = Connection::open(state(made.path())).expect("opens");
        conn.execute_batch(&sql).expect("is SQL");
        conn.close().expect("closes");
        let nothing = TempDir::new().expect("a folder");
        let (went, store) = back(&made, nothing.path());
        let let_in: &[&str] = if version >= 5 { &["one:alice"] } else { &[] };
        assert_eq!(went.let_in, let_in, "version {version}");
        assert_eq!(went.asked_again, if version >= 6 { 2 } else { 0 }, "version {version}");
        assert_eq!(told(&record(&store).await)[0].0, AuditDeed::WentBack, "version {version}");
        assert_eq!(store.check().await, Ok(()));
    }
}
