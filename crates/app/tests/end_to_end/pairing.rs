//! People are let in and put out with the real binary, whether a gateway runs or not.

use std::path::{Path, PathBuf};

use talaria_testkit::{Asked, Clutter, FakeLlm, GatewayProcess, Home, Launch, Reply, Vendor};
use talaria_testkit::{VendorSettings, within};

use crate::rig::{HANGS, binary, run};

struct Place {
    home: Home,
    vendor: Vendor,
    _llm: FakeLlm,
}

impl Place {
    async fn new() -> Self {
        let vendor = Vendor::open(VendorSettings::default()).await.unwrap();
        let llm = FakeLlm::open().await.unwrap();
        llm.script(|asked: &Asked| Reply::Says(format!("You said {:?}.", asked.said())));
        let home = Home::new(vendor.address(), &llm.base_url(), Clutter::default()).unwrap();
        let written = std::fs::read_to_string(home.file("config.yaml")).unwrap();
        let closed = written.replace("    allow_everyone: true\n", "");
        assert_ne!(closed, written);
        home.write("config.yaml", &closed).unwrap();
        Self { home, vendor, _llm: llm }
    }

    async fn start(&self) -> GatewayProcess {
        let mut process = Launch::new(binary()).start(self.home.path()).unwrap();
        within(HANGS, "the ready line", process.ready()).await.unwrap();
        process
    }

    async fn done(&self, arguments: &[&str]) -> String {
        let (ended, output) = run(self.home.path(), arguments).await;
        assert!(ended.success(), "{arguments:?}: {output}");
        output
    }

    async fn refused(&self, arguments: &[&str]) -> String {
        let (ended, output) = run(self.home.path(), arguments).await;
        assert!(!ended.success(), "{arguments:?}: {output}");
        output
    }

    fn says(&self, who: &str, text: &str) {
        self.vendor.happens(who, text, |event| event.sender = who.into());
    }

    /// What was shown to somebody, once it is so much.
    async fn told(&self, who: &str, many: usize) -> Vec<String> {
        let texts = |who: &str, vendor: &Vendor| {
            vendor.read(|truth| {
                truth.shown_in(who).map(|shown| shown.text.clone()).collect::<Vec<_>>()
            })
        };
        let chat = who.to_owned();
        let enough = self.vendor.until(move |truth| {
            truth.shown().iter().filter(|shown| shown.chat == chat).count() >= many
        });
        within(HANGS, "what somebody is told", enough).await;
        texts(who, &self.vendor)
    }
}

/// The code after these words.
fn code(text: &str, before: &str) -> String {
    let (_, rest) = text.split_once(before).unwrap_or_else(|| panic!("no code in {text:?}"));
    rest.trim_start().chars().take(8).collect()
}

#[tokio::test]
async fn somebody_is_let_in_by_the_code_they_were_given_and_put_out_again() {
    let place = Place::new().await;
    let process = place.start().await;
    place.says("ann", "hello");
    let told = place.told("ann", 1).await;
    let given = code(&told[0], "talaria pair approve bench");
    let list = place.done(&["pair", "list"]).await;
    assert!(list.contains("asks") && list.contains("ann") && !list.contains(&given), "{list}");
    let wrong = place.refused(&["pair", "approve", "bench", "AAAAAAAA"]).await;
    assert!(wrong.contains("no open request has that code"), "{wrong}");
    let nowhere = place.refused(&["pair", "approve", "nowhere", &given]).await;
    assert!(nowhere.contains("choose one of bench"), "{nowhere}");
    let (first, last) = given.split_at(4);
    let done = place.done(&["pair", "approve", "bench", &first.to_lowercase(), last]).await;
    assert!(done.contains("ann") && done.contains("is let in on bench, in direct chats"), "{done}");
    assert!(place.told("ann", 2).await[1].starts_with("Paired!"));
    place.says("ann", "good morning");
    assert!(place.told("ann", 3).await[2].contains("good morning"));
    let done = place.done(&["pair", "revoke", "bench", "ann"]).await;
    assert!(done.contains("is not heard on bench any more"), "{done}");
    assert!(done.contains("once in ten minutes"), "{done}");
    let again = place.refused(&["pair", "revoke", "bench", "ann"]).await;
    assert!(again.contains("nobody of that id"), "{again}");
    place.says("ann", "still there?");
    let issued = place.done(&["pair", "issue", "bench"]).await;
    place.says("ben", &code(&issued, ""));
    assert!(place.told("ben", 1).await[0].starts_with("Paired!"));
    place.says("ben", "and me");
    assert!(place.told("ben", 2).await[1].contains("and me"));
    assert_eq!(place.told("ann", 3).await.len(), 3, "who was put out is not heard");
    let record = place.done(&["audit"]).await;
    for deed in ["let_in", "put_out", "code_issued"] {
        assert!(record.contains(deed), "{record}");
    }
    let verified = place.done(&["audit", "--verify"]).await;
    assert!(verified.starts_with("4 rows"), "{verified}");
    drop(process);
}

/// Every file below a folder that has these words in it.
fn files_with(words: &str, folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let (path, kind) = entry.map(|entry| (entry.path(), entry.file_type().unwrap())).unwrap();
        if kind.is_dir() {
            found.extend(files_with(words, &path));
        } else if kind.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            if bytes.windows(words.len()).any(|window| window == words.as_bytes()) {
                found.push(path);
            }
        }
    }
    found
}

#[tokio::test]
async fn a_code_is_in_no_file_once_it_was_told() {
    let place = Place::new().await;
    let mut process = place.start().await;
    let issued = place.done(&["chat", "/pair bench"]).await;
    let handed_on = code(&issued.replace('`', ""), "Pairing code: ");
    place.says("ann", "hello");
    let given = code(&place.told("ann", 1).await[0], "talaria pair approve bench");
    assert!(handed_on.len() == 8 && given.len() == 8, "{issued}");
    // A chat's messages leave one after the other: what came before is settled when the next is there.
    let wrong = place.done(&["chat", &format!("/pair approve {given}")]).await;
    assert!(wrong.contains("Say on which account"), "{wrong}");
    let approved = place.done(&["chat", &format!("/pair approve bench {given}")]).await;
    assert!(approved.contains("is let in on"), "{approved}");
    assert!(place.told("ann", 2).await[1].starts_with("Paired!"));
    place.says("ben", &handed_on);
    assert!(place.told("ben", 1).await[0].starts_with("Paired!"));
    place.done(&["stop"]).await;
    within(HANGS, "the gateway to end", process.ended()).await.unwrap();
    let output = process.drained().await;
    for code in [&handed_on, &given] {
        assert_eq!(files_with(code, place.home.path()), [] as [PathBuf; 0]);
        assert!(!output.contains(code.as_str()), "{output}");
    }
    let state = place.home.file("state.db");
    assert!(files_with("\u{2022}\u{2022}", place.home.path()).contains(&state), "it is looked for");
}

#[tokio::test]
async fn somebody_is_let_in_while_no_gateway_runs_and_told_when_one_does() {
    let place = Place::new().await;
    let process = place.start().await;
    place.says("ann", "hello");
    let told = place.told("ann", 1).await;
    let given = code(&told[0], "talaria pair approve bench");
    place.done(&["stop"]).await;
    drop(process);
    let done = place.done(&["pair", "approve", "bench", &given, "--everywhere"]).await;
    assert!(done.contains("in every chat") && done.contains("when the gateway runs"), "{done}");
    let list = place.done(&["pair", "list", "bench", "--json"]).await;
    assert!(
        list.contains("\"sender\": \"ann\"") && list.contains("\"everywhere\": true"),
        "{list}"
    );
    let _process = place.start().await;
    assert!(place.told("ann", 2).await[1].starts_with("Paired!"));
    place.says("ann", "good morning");
    assert!(place.told("ann", 3).await[2].contains("good morning"));
    let json = place.done(&["audit", "--json"]).await;
    assert!(json.contains("bench:ann") && !json.contains(&given), "{json}");
}

#[tokio::test]
async fn a_lockout_names_its_ways_out_and_is_cleared() {
    let place = Place::new().await;
    for _ in 0..4 {
        place.refused(&["pair", "approve", "bench", "AAAAAAAA"]).await;
    }
    let locked = place.refused(&["pair", "approve", "bench", "AAAAAAAA"]).await;
    assert!(locked.contains("`talaria pair clear ACCOUNT`"), "{locked}");
    let list = place.done(&["pair", "list"]).await;
    assert!(list.contains("locked until") && list.contains("`talaria pair clear bench`"), "{list}");
    let issued = place.done(&["pair", "issue", "bench"]).await;
    assert!(issued.contains("is let in and heard in direct chats"), "{issued}");
    let cleared = place.done(&["pair", "clear", "bench"]).await;
    assert!(
        cleared.contains("One request or code is void, and pairing is not locked"),
        "{cleared}"
    );
    let again = place.done(&["pair", "clear", "bench"]).await;
    assert!(again.contains("No request or code is open, and pairing is not locked"), "{again}");
    assert!(!place.done(&["pair", "list"]).await.contains("locked"));
    let record = place.done(&["audit"]).await;
    assert!(record.contains("one request or code; the lockout is over"), "{record}");
}

#[tokio::test]
async fn what_the_record_is_asked_for_wrongly_is_said() {
    let place = Place::new().await;
    let nothing = place.done(&["audit", "--since", "1h"]).await;
    assert_eq!(nothing.trim(), "Nothing is recorded.");
    place.done(&["pair", "issue", "bench"]).await;
    let later = place.done(&["audit", "--since", "0s"]).await;
    assert!(later.starts_with("Nothing is recorded since 20"), "{later}");
    assert!(!place.done(&["audit", "--since", "1h"]).await.contains("Nothing is recorded"));
    let verified = place.done(&["audit", "--verify"]).await;
    let mark = verified.split("Mark: ").nth(1).and_then(|rest| rest.lines().next()).unwrap();
    let short = &mark[..mark.len() - 1];
    for wrong in ["nonsense", "1", "1:", ":abc", short, &mark.replace(':', " ")] {
        let refused = place.refused(&["audit", "--verify", "--seen", wrong]).await;
        assert!(refused.contains("is not a mark"), "{wrong}: {refused}");
        assert!(refused.contains("`talaria audit --verify` prints"), "{wrong}: {refused}");
        assert!(!refused.contains("not as it was written"), "{wrong}: {refused}");
    }
    let lost = place.refused(&["audit", "--verify", "--seen", &mark.replacen('1', "7", 1)]).await;
    assert!(lost.contains("is not there") && lost.contains("compare it with a backup"), "{lost}");
}

#[tokio::test]
async fn a_record_that_was_tampered_with_is_noticed_and_what_is_changed_is_recorded() {
    let place = Place::new().await;
    let process = place.start().await;
    let written = std::fs::read_to_string(place.home.file("config.yaml")).unwrap();
    let changed =
        written.replace("    platform: loopback\n", "    platform: loopback\n    allow: [ann]\n");
    place.home.write("config.yaml", &changed).unwrap();
    place.done(&["reload"]).await;
    place.done(&["pair", "issue", "bench"]).await;
    let record = place.done(&["audit"]).await;
    assert!(
        record.contains("settings_changed") && record.contains("accounts.bench.allow"),
        "{record}"
    );
    place.done(&["stop"]).await;
    drop(process);
    place.home.write("config.yaml", &changed.replace("allow: [ann]", "allow: [ann, ben]")).unwrap();
    let process = place.start().await;
    place.done(&["stop"]).await;
    drop(process);
    let record = place.done(&["audit"]).await;
    let recorded = record.matches("settings_changed").count();
    assert_eq!(recorded, 2, "while it ran, and while it did not: {record}");
    let verified = place.done(&["audit", "--verify"]).await;
    let mark = verified.split("Mark: ").nth(1).and_then(|rest| rest.lines().next()).unwrap();
    place.done(&["audit", "--verify", "--seen", mark]).await;
    let conn = rusqlite::Connection::open(place.home.file("state.db")).unwrap();
    conn.execute_batch(
        "DROP TRIGGER audit_is_not_forgotten;
         DELETE FROM audit WHERE seq = (SELECT max(seq) FROM audit)",
    )
    .unwrap();
    let cut = place.refused(&["audit", "--verify", "--seen", mark]).await;
    assert!(cut.contains("is not there"), "{cut}");
    conn.execute_batch(
        "DROP TRIGGER audit_is_not_changed; UPDATE audit SET actor = 'x' WHERE seq = 1",
    )
    .unwrap();
    conn.close().unwrap();
    let noticed = place.refused(&["audit", "--verify"]).await;
    assert!(noticed.contains("row 1 was changed"), "{noticed}");
}
