//! Reading the two files of a home folder.

use std::fs;
use std::path::Path;

use talaria_config::{Problems, Sources, load};

use crate::platforms;

fn home() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn read(home: &Path) -> Result<Sources, Problems> {
    Sources::read(home, [])
}

fn refusal(home: &Path) -> String {
    read(home).expect_err("refused").to_string()
}

fn problems(home: &Path) -> String {
    let sources = read(home).expect("readable");
    load(sources, &platforms::ALL).expect_err("refused").to_string()
}

fn warnings(home: &Path) -> Vec<String> {
    let sources = read(home).expect("readable");
    let loaded = load(sources, &platforms::ALL).expect("right");
    loaded.warnings().iter().map(ToString::to_string).collect()
}

#[test]
fn an_empty_or_missing_home_is_all_defaults() {
    let home = home();
    load(read(home.path()).expect("readable"), &platforms::ALL).expect("right");
    let missing = home.path().join("missing");
    load(read(&missing).expect("readable"), &platforms::ALL).expect("right");
}

#[test]
fn both_files_are_read() {
    let home = home();
    fs::write(home.path().join("config.yaml"), "model: from-file").expect("written");
    fs::write(home.path().join(".env"), "TALARIA_AGENT__MAX_STEPS=5").expect("written");
    let sources = read(home.path()).expect("readable");
    let loaded = load(sources, &platforms::ALL).expect("right");
    assert_eq!(loaded.config().model.as_deref(), Some("from-file"));
    assert_eq!(loaded.config().agent.max_steps, 5);
}

#[test]
fn what_cannot_be_read_is_refused_with_the_reason() {
    let home = home();
    let config = home.path().join("config.yaml");
    fs::create_dir(&config).expect("made");
    assert_eq!(refusal(home.path()), "config.yaml: is not a file");
    fs::remove_dir(&config).expect("removed");
    fs::write(&config, "a".repeat((1 << 20) + 1)).expect("written");
    assert_eq!(
        refusal(home.path()),
        "config.yaml: is larger than 1024 KiB, which no configuration needs to be"
    );
    fs::write(&config, b"model: \xff").expect("written");
    fs::create_dir(home.path().join(".env")).expect("made");
    assert_eq!(
        refusal(home.path()),
        ".env: is not a file\nconfig.yaml: is not UTF-8; byte 7 cannot be read as text"
    );
}

#[cfg(unix)]
#[test]
fn a_link_leads_to_a_file_or_is_refused() {
    let home = home();
    let config = home.path().join("config.yaml");
    std::os::unix::fs::symlink(home.path().join("elsewhere"), &config).expect("linked");
    assert_eq!(refusal(home.path()), "config.yaml: is a link to a file that does not exist");
    fs::write(home.path().join("elsewhere"), "model: x").expect("written");
    read(home.path()).expect("readable");
    fs::write(home.path().join("keys"), "A=b").expect("written");
    std::os::unix::fs::symlink(home.path().join("keys"), home.path().join(".env")).expect("linked");
    assert_eq!(
        refusal(home.path()),
        ".env: is a link; secrets are read only from a file in the home folder itself"
    );
}

#[cfg(unix)]
#[test]
fn a_variable_that_is_no_text_is_refused_if_it_is_ours() {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;
    let home = home();
    let variable = |name: &str| (OsString::from(name), OsString::from_vec(vec![0xff]));
    let load_with = |name| {
        let sources = Sources::read(home.path(), [variable(name)]).expect("readable");
        load(sources, &platforms::ALL).map(|_| ()).map_err(|problems| problems.to_string())
    };
    assert_eq!(load_with("OTHER"), Ok(()));
    assert_eq!(load_with("TALARIA_MODEL"), Err("TALARIA_MODEL: the value is not UTF-8".into()));
}

#[cfg(unix)]
#[test]
fn secrets_that_others_can_read_are_noticed() {
    use std::os::unix::fs::PermissionsExt;
    let home = home();
    let write = |name: &str, text: &str, mode: u32| {
        let path = home.path().join(name);
        fs::write(&path, text).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("changed");
    };
    let warning = |name: &str, mode: &str| {
        format!(
            "{name}: holds secrets and may be read by other users of this machine (mode {mode}); \
             run `chmod 600 {}`",
            home.path().join(name).display()
        )
    };
    write("config.yaml", "providers: {p: {api_key: k}}", 0o600);
    write(".env", "ANTHROPIC_API_KEY=k", 0o600);
    assert_eq!(warnings(home.path()), Vec::<String>::new());
    write("config.yaml", "providers: {p: {api_key: k}}", 0o644);
    assert_eq!(warnings(home.path()), [warning("config.yaml", "644")]);
    for (mode, written) in [(0o640, "640"), (0o604, "604"), (0o620, "620")] {
        write(".env", "ANTHROPIC_API_KEY=k", mode);
        assert_eq!(problems(home.path()), warning(".env", written));
    }
    write("config.yaml", "model: x", 0o644);
    write(".env", "TALARIA_MODEL=x", 0o644);
    assert_eq!(warnings(home.path()), Vec::<String>::new(), "there is nothing to hide");
}
