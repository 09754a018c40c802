//! The log in files: why a start failed is in it, and a file that hangs holds nobody up.

use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

use nix::sys::stat::Mode;
use talaria_testkit::{Home, Launch, VendorSettings, within};

use crate::rig::{HANGS, Rig, binary, run};

/// Starts on a port that is taken.
async fn start_on_a_taken_port(home: &Home) -> String {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let launch = Launch::new(binary()).environment("TALARIA_HTTP__LISTEN", &address);
    let mut process = launch.start(home.path()).unwrap();
    let ended = within(HANGS, "the refusal", process.ended()).await.unwrap();
    assert_eq!(ended.code(), Some(1), "{}", process.drained().await);
    address
}

#[tokio::test]
async fn the_log_says_why_the_last_start_failed() {
    let home = Home::empty().unwrap();
    let address = start_on_a_taken_port(&home).await;
    let (ended, output) = run(home.path(), &["logs", "-n", "1", "--level", "error"]).await;
    assert!(ended.success(), "{output}");
    assert!(output.contains("ERROR it has not started"), "{output}");
    assert!(output.contains(&format!("{address} is taken")), "{output}");

    home.write("state.db", "no database at all, and longer than its header would be").unwrap();
    fs::set_permissions(home.file("state.db"), Permissions::from_mode(0o600)).unwrap();
    let (ended, output) = run(home.path(), &["run"]).await;
    assert_eq!(ended.code(), Some(78), "{output}");
    let (_, output) = run(home.path(), &["logs", "-n", "1"]).await;
    assert!(output.contains("it has not started") && output.contains("state.db"), "{output}");

    home.write("config.yaml", "agent: {max_steps: many}\n").unwrap();
    let (ended, output) = run(home.path(), &["run"]).await;
    assert_eq!(ended.code(), Some(78), "{output}");
    let (_, output) = run(home.path(), &["logs", "-n", "1"]).await;
    assert!(output.contains("agent.max_steps"), "{output}");
}

#[tokio::test]
async fn who_wants_no_log_in_files_gets_none_from_a_start_that_fails_either() {
    let home = Home::empty().unwrap();
    home.write("config.yaml", "log: {files: 0}\n").unwrap();
    start_on_a_taken_port(&home).await;
    assert!(!home.file("logs").exists());
}

#[tokio::test]
async fn nothing_is_left_behind_in_a_folder_that_is_refused_as_a_home() {
    let home = Home::empty().unwrap();
    home.write("notes.txt", "somebody else's").unwrap();
    fs::set_permissions(home.path(), Permissions::from_mode(0o755)).unwrap();
    let (ended, output) = run(home.path(), &["run"]).await;
    assert!(!ended.success(), "{output}");
    let left: Vec<_> =
        fs::read_dir(home.path()).unwrap().map(|found| found.unwrap().file_name()).collect();
    assert_eq!(left, ["notes.txt"]);
}

#[tokio::test]
async fn a_log_file_that_hangs_holds_up_neither_an_answer_nor_the_end() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    fs::create_dir(rig.home.file("logs")).unwrap();
    for folder in [rig.home.path(), &rig.home.file("logs")] {
        fs::set_permissions(folder, Permissions::from_mode(0o700)).unwrap();
    }
    // Nobody reads from it, so that whoever opens it waits for ever.
    let pipe = rig.home.file("logs/gateway.log");
    nix::unistd::mkfifo(&pipe, Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
    rig.start().await;
    for n in 0..20 {
        rig.vendor.say(&format!("chat{}", n % 4), "hello");
    }
    rig.until_everything_is_answered().await;
    rig.settle().await;
    rig.end().await;
    rig.check();
    // Nor does it hold up a start that fails.
    start_on_a_taken_port(&rig.home).await;
}
