//! What a backup promises, and what is not taken for one.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use talaria_machine::make_for_us;
use talaria_store_sqlite::SqliteStore;
use tempfile::TempDir;

use super::*;
use crate::home::Home;

struct Place {
    folder: TempDir,
    home: Home,
}

impl Place {
    /// A home as somebody uses it.
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let home = Home::at(&folder.path().join("home"));
        home.prepare().expect("makes a home");
        let place = Self { folder, home };
        place.write("config.yaml", "agent: {}\n");
        place.write(".env", "KEY=secret\n");
        place.write("files/ab/abc", &"x".repeat(100_000));
        place.write("accounts/web/login.key", "key");
        place.write("hooks/greet/handler", "#!/bin/sh\n");
        let executable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(place.home.path().join("hooks/greet/handler"), executable)
            .expect("sets a mode");
        drop(SqliteStore::open(place.home.path()).expect("opens"));
        place
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.home.path().join(name);
        make_for_us(path.parent().expect("a folder")).expect("makes a folder");
        fs::write(&path, text).expect("writes");
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("sets a mode");
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.home.path().join(name)).expect("reads")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn backup(&self) -> PathBuf {
        let file = self.file("backup.tar.gz");
        pack(&self.home, Some(file)).expect("packs").file
    }
}

#[test]
fn everything_comes_back_and_what_it_replaces_is_kept() {
    let place = Place::new();
    let backup = place.backup();
    let mode = |path: &Path| fs::metadata(path).expect("is there").permissions().mode() & 0o777;
    assert_eq!(mode(&backup), 0o600);
    let checked = verify(&place.home, &backup).expect("is whole");
    assert_eq!((checked.members, checked.about.schema), (5, Some(talaria_store_sqlite::schema())));

    place.write("config.yaml", "agent: {max_steps: 3}\n");
    place.write("files/cd/cde", "later");
    place.write("search.db", "an index of something else");
    place.write("unrelated", "stays");
    let restored = restore(&place.home, &backup).expect("goes back");
    assert_eq!(place.read("config.yaml"), "agent: {}\n");
    assert_eq!(place.read("files/ab/abc").len(), 100_000);
    assert!(!place.home.path().join("files/cd").exists());
    assert!(!place.home.path().join("search.db").exists());
    assert_eq!(place.read("unrelated"), "stays");
    assert_eq!(mode(&place.home.path().join("hooks/greet/handler")), 0o700);
    assert_eq!(mode(&place.home.path().join(".env")), 0o600);
    let replaced = restored.replaced.expect("something was replaced");
    let kept = |name: &str| fs::read_to_string(replaced.join(name)).expect("is kept");
    assert_eq!(kept("config.yaml"), "agent: {max_steps: 3}\n");
    assert_eq!(kept("files/cd/cde"), "later");
    drop(SqliteStore::open(place.home.path()).expect("opens what came back"));
    assert!(!place.home.restoring().exists() && !place.home.backups().join(".work").exists());
}

#[test]
fn no_login_is_in_a_backup_and_none_outlasts_going_back() {
    let place = Place::new();
    place.write("accounts/web/logins/0a1b", "");
    place.write("accounts/bot/places.json", "{}");
    place.write("accounts/bot/nested/login.key", "of a platform's own");
    let backup = place.backup();
    let checked = verify(&place.home, &backup).expect("is whole");
    assert_eq!(checked.members, 7, "all but the key and the link");
    restore(&place.home, &backup).expect("goes back");
    let is_there = |name: &str| place.home.path().join("accounts").join(name).exists();
    assert!(is_there("bot/places.json") && is_there("bot/nested/login.key"));
    assert!(!is_there("web/login.key") && !is_there("web/logins"));

    // A backup with nothing of an account leaves the accounts, and still nobody is logged in.
    let place = Place::new();
    let backup = place.backup();
    place.write("accounts/web/logins/0a1b", "");
    place.write("accounts/web/kept", "by the page");
    restore(&place.home, &backup).expect("goes back");
    let is_there = |name: &str| place.home.path().join("accounts/web").join(name).exists();
    assert!(is_there("kept") && !is_there("login.key") && !is_there("logins"));

    // One that was written otherwise may have a key, which never comes to its place.
    let forged = place.file("forged");
    let key = ("home/accounts/web/login.key", tar::EntryType::Regular, "known to others by now");
    forge(&forged, &about(), &[key]);
    restore(&place.home, &forged).expect("goes back");
    assert!(!is_there("login.key"));
}

#[test]
fn who_comes_back_by_a_list_is_named() {
    let place = Place::new();
    let lists = |allow: &str| {
        format!("accounts: {{bench: {{platform: loopback, address: '127.0.0.1:1', {allow}}}}}\n")
    };
    place.write("config.yaml", &lists("allow: [ann, ben], allow_everyone: true"));
    let backup = place.backup();
    let restored = restore(&place.home, &backup).expect("goes back");
    assert!(restored.listed.is_empty(), "nothing has changed: {:?}", restored.listed);
    place.write("config.yaml", &lists("allow: [ben, cleo]"));
    let restored = restore(&place.home, &backup).expect("goes back");
    assert_eq!(restored.listed, ["bench:ann", "bench:everybody"]);
    // Settings that cannot be read let nobody in, so everybody comes back by the backup's.
    place.write("config.yaml", "accounts: [\n");
    let restored = restore(&place.home, &backup).expect("goes back");
    assert_eq!(restored.listed, ["bench:ann", "bench:ben", "bench:everybody"]);
}

#[test]
fn a_home_without_a_database_has_backups_too() {
    let place = Place::new();
    fs::remove_file(place.home.path().join("state.db")).expect("removes");
    let backup = place.backup();
    assert_eq!(verify(&place.home, &backup).expect("is whole").about.schema, None);
    restore(&place.home, &backup).expect("goes back");
}

#[test]
fn what_is_no_file_is_named_and_left_out() {
    let place = Place::new();
    symlink("/etc", place.home.path().join("files/elsewhere")).expect("links");
    let packed = pack(&place.home, Some(place.file("backup"))).expect("packs");
    assert_eq!(packed.left_out, ["files/elsewhere, which is no file"]);
}

#[test]
fn a_backup_never_replaces_a_file() {
    let place = Place::new();
    let backup = place.backup();
    let before = fs::read(&backup).expect("reads");
    let halt = pack(&place.home, Some(backup.clone())).expect_err("is there already");
    assert!(halt.explained().contains("there already"), "{halt}");
    assert_eq!(fs::read(&backup).expect("reads"), before);
}

#[test]
fn nobody_goes_back_while_a_gateway_runs() {
    let place = Place::new();
    let backup = place.backup();
    let _running = place.home.lock().expect("locks");
    let halt = restore(&place.home, &backup).expect_err("a gateway runs");
    assert!(halt.explained().contains("talaria stop"), "{halt}");
}

/// What both, checking and going back, say of a file; going back must change nothing.
fn refused(place: &Place, file: &Path) -> String {
    let checked = verify(&place.home, file).expect_err("is refused").explained();
    let restored = restore(&place.home, file).expect_err("is refused").explained();
    assert_eq!(checked, restored);
    assert_eq!(place.read("config.yaml"), "agent: {}\n");
    assert!(!place.home.restoring().exists());
    checked
}

#[test]
fn a_backup_that_was_cut_short_is_refused_wherever() {
    let place = Place::new();
    let whole = fs::read(place.backup()).expect("reads");
    let cut = place.file("cut");
    for keep in [0, 5, 100, whole.len() / 2, whole.len() - 600, whole.len() - 30] {
        fs::write(&cut, &whole[..keep]).expect("writes");
        let said = refused(&place, &cut);
        assert!(said.contains("refused"), "{keep}: {said}");
    }
}

#[test]
fn a_changed_byte_is_never_restored() {
    let place = Place::new();
    let backup = place.backup();
    let whole = fs::read(&backup).expect("reads");
    let changed = place.file("changed");
    let unpacked = |bytes: &[u8]| {
        let mut text = Vec::new();
        GzDecoder::new(bytes).read_to_end(&mut text).map(|_| text).ok()
    };
    let plain = unpacked(&whole).expect("is a stream");
    let mut refused = 0;
    // The first ten bytes are gzip's own header: a time and a system mean nothing.
    for at in (10..whole.len()).step_by(whole.len() / 150) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x20;
        fs::write(&changed, &bytes).expect("writes");
        // Some bits of a stream mean nothing, such as the length of a code that is not used, and a run of
        // zeros can be told in several ways.
        let is_the_same = unpacked(&bytes).as_ref() == Some(&plain);
        assert_eq!(verify(&place.home, &changed).is_ok(), is_the_same, "byte {at}");
        refused += u32::from(!is_the_same);
    }
    assert!(refused > 80, "only {refused} changes were noticed");
}

/// Writes a backup of our own making. Each member is a name, a kind and a text.
fn forge(to: &Path, about: &About, members: &[(&str, tar::EntryType, &str)]) {
    let file = fs::File::create(to).expect("makes a file");
    let mut archive = tar::Builder::new(GzEncoder::new(file, Compression::fast()));
    let mut add = |name: &str, kind: tar::EntryType, bytes: &[u8]| {
        let mut header = tar::Header::new_gnu();
        // The library would not write such names.
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(kind);
        header.set_size(bytes.len() as u64);
        header.set_mode(0o600);
        if kind != tar::EntryType::Regular {
            header.set_link_name("/etc/passwd").expect("a short name");
        }
        header.set_cksum();
        archive.append(&header, bytes).expect("writes");
    };
    let about_bytes = serde_json::to_vec(about).expect("encodes");
    add(ABOUT, tar::EntryType::Regular, &about_bytes);
    let mut listed = Vec::new();
    for (name, kind, text) in members {
        add(name, *kind, text.as_bytes());
        let mut reading = Hashing::new(text.as_bytes());
        io::copy(&mut reading, &mut io::sink()).expect("reads");
        listed.push(reading.member(name.trim_start_matches("home/").to_owned()));
    }
    let manifest = Manifest { about: about.clone(), members: listed };
    add(MANIFEST, tar::EntryType::Regular, &serde_json::to_vec(&manifest).expect("encodes"));
    archive.into_inner().and_then(GzEncoder::finish).expect("writes");
}

fn about() -> About {
    About { format: FORMAT, talaria: "0".into(), schema: None, created: "then".into() }
}

#[test]
fn a_forged_backup_reaches_nothing_outside_its_place() {
    use tar::EntryType::{Directory, Fifo, Link, Regular, Symlink};
    let place = Place::new();
    let forged = place.file("forged");
    forge(&forged, &about(), &[("home/config.yaml", Regular, "agent: {}\n")]);
    verify(&place.home, &forged).expect("the forger's work is good");
    let members = [
        ("../escaped", Regular),
        ("home/../../escaped", Regular),
        ("home/files/../../escaped", Regular),
        ("/tmp/escaped", Regular),
        ("home", Regular),
        ("home/gateway.lock", Regular),
        ("home/state.db-wal", Regular),
        ("home/state.db/below", Regular),
        ("home/files/link", Symlink),
        ("home/files/link", Link),
        ("home/files/pipe", Fifo),
        ("home/files/folder", Directory),
    ];
    for (name, kind) in members {
        let text = if kind == Regular { "evil" } else { "" };
        forge(&forged, &about(), &[(name, kind, text)]);
        let said = refused(&place, &forged);
        assert!(said.contains("no backup contains"), "{name}: {said}");
    }
    assert!(!place.folder.path().join("escaped").exists());
    forge(&forged, &about(), &[("home/.env", Regular, "a"), ("home/.env", Regular, "b")]);
    refused(&place, &forged);
}

/// Few bytes that stand for many: nothing of it is written, neither to look at it nor to go back to it.
#[test]
fn a_backup_that_unfolds_without_end_is_refused_before_it_fills_anything() {
    let place = Place::new();
    let bomb = place.file("bomb");
    let file = fs::File::create(&bomb).expect("makes a file");
    let mut stream = GzEncoder::new(file, Compression::fast());
    let about = serde_json::to_vec(&About { schema: Some(1), ..about() }).expect("encodes");
    for (name, size, bytes) in
        [(ABOUT, about.len(), about.clone()), ("home/state.db", 1 << 41, vec![0; 1 << 20])]
    {
        let mut header = tar::Header::new_gnu();
        header.set_path(name).expect("a short name");
        header.set_size(size as u64);
        header.set_mode(0o600);
        header.set_cksum();
        stream.write_all(header.as_bytes()).expect("writes");
        stream.write_all(&bytes).expect("writes");
        stream
            .write_all(&vec![0; bytes.len().next_multiple_of(512) - bytes.len()])
            .expect("writes");
    }
    stream.finish().expect("writes");
    let said = refused(&place, &bomb);
    assert!(said.contains("larger than anything that was packed"), "{said}");
}

#[test]
fn a_backup_of_a_later_version_is_refused_with_advice() {
    let place = Place::new();
    let forged = place.file("forged");
    let later = [
        About { format: FORMAT + 1, ..about() },
        About { schema: Some(talaria_store_sqlite::schema() + 1), ..about() },
    ];
    for about in later {
        forge(&forged, &about, &[]);
        let said = refused(&place, &forged);
        assert!(said.contains("later version") && said.contains("nothing was changed"), "{said}");
    }
}

#[test]
fn a_database_that_is_none_is_refused_although_its_digest_is_right() {
    let place = Place::new();
    let forged = place.file("forged");
    let about = About { schema: Some(1), ..about() };
    forge(&forged, &about, &[("home/state.db", tar::EntryType::Regular, "no database")]);
    refused(&place, &forged);
}
