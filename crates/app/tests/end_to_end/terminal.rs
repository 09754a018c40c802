//! A person at a real terminal: `talaria chat` on a pseudo-terminal, beside the real gateway.

use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZero;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex};

use nix::pty::{Winsize, openpty};
use nix::sys::termios::{Termios, tcgetattr};
use talaria_testkit::{Asked, Hold, Home, Launch, Reply, VendorSettings, within};
use tokio::process::{Child, Command};
use tokio::sync::watch;

use crate::questions::asks;
use crate::rig::{HANGS, Rig, binary, insist, run};

const SIZE: Winsize = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };

const UP: &str = "\x1b[A";
pub(crate) const CTRL_C: &str = "\x03";
const CTRL_D: &str = "\x04";
const CTRL_J: &str = "\n";
pub(crate) const ENTER: &str = "\r";
const TAB: &str = "\t";

/// A person at a terminal in which the binary runs.
pub(crate) struct Seat {
    child: Child,
    keyboard: File,
    terminal: OwnedFd,
    before: Termios,
    screen: Arc<Mutex<vt100::Parser>>,
    drawn: watch::Receiver<u64>,
}

impl Seat {
    /// In which `talaria chat` runs.
    fn take(rig: &Rig) -> Self {
        Self::at(rig.home.path(), &["chat"])
    }

    /// In which this command runs.
    pub(crate) fn at(home: &Path, command: &[&str]) -> Self {
        let pair = openpty(Some(&SIZE), None).unwrap();
        let before = tcgetattr(&pair.slave).unwrap();
        let end = || pair.slave.try_clone().unwrap();
        // The terminal has to be the process's own, or Ctrl-C would interrupt nobody.
        let child = Command::new("setsid")
            .args(["--ctty", "--wait"])
            .arg(binary())
            .args(command)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("TERM", "xterm-256color")
            .env("HOME", home)
            .env("TALARIA_HOME", home)
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let [rows, columns] = [SIZE.ws_row, SIZE.ws_col].map(|size| NonZero::new(size).unwrap());
        let screen = Arc::new(Mutex::new(vt100::Parser::new(rows, columns, 0)));
        let (draws, drawn) = watch::channel(0);
        let mut output = File::from(pair.master.try_clone().unwrap());
        let shown = screen.clone();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(read @ 1..) = output.read(&mut bytes) {
                shown.lock().unwrap().process(&bytes[..read]);
                draws.send_modify(|draws| *draws += 1);
            }
        });
        Self { child, keyboard: pair.master.into(), terminal: pair.slave, before, screen, drawn }
    }

    pub(crate) fn types(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    pub(crate) fn says(&mut self, line: &str) {
        self.types(line);
        self.types(ENTER);
    }

    pub(crate) fn text(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    /// The line with the cursor.
    pub(crate) fn line(&self) -> String {
        let screen = self.screen.lock().unwrap();
        let (row, _) = screen.screen().cursor_position();
        screen.screen().rows(0, SIZE.ws_col).nth(row.into()).unwrap_or_default()
    }

    /// Completes once the screen looks like this.
    pub(crate) async fn sees(&mut self, what: &str, looks: impl Fn(&Self) -> bool) {
        let drawn = self.drawn.clone();
        let seen = async {
            let mut drawn = drawn;
            while !looks(self) {
                drawn.changed().await.unwrap();
            }
        };
        if tokio::time::timeout(HANGS, seen).await.is_err() {
            panic!("in vain: {what}\n{}", self.text());
        }
    }

    pub(crate) async fn reads(&mut self, expected: &str) {
        let what = format!("{expected:?} on the screen");
        self.sees(&what, |seat| seat.text().contains(expected)).await;
    }

    /// Completes once the prompt is open, with this typed at it.
    async fn prompted(&mut self, typed: &str) {
        let expected = format!("› {typed}");
        let what = format!("the prompt {expected:?}");
        self.sees(&what, |seat| seat.line().trim_end() == expected.trim_end()).await;
    }

    pub(crate) async fn ended(&mut self) -> ExitStatus {
        within(HANGS, "the chat to end", self.child.wait()).await.unwrap()
    }

    pub(crate) fn is_as_before(&self) -> bool {
        let now = tcgetattr(&self.terminal).unwrap();
        now == self.before
    }
}

/// A model that says what it was told, quoted.
fn quotes(asked: &Asked) -> Reply {
    Reply::Says(format!("You said {:?} to me.", asked.said()))
}

async fn rig() -> Rig {
    let mut rig = Rig::as_installed(VendorSettings::default(), &[]).await;
    rig.llm.script(quotes);
    rig.start().await;
    rig
}

#[tokio::test]
async fn only_a_terminal_is_shown_a_link_that_logs_in() {
    let home = Home::empty().unwrap();
    home.write("config.yaml", "model: demo\nhttp: {listen: '127.0.0.1:0'}\n").unwrap();
    let minted = || home.file("accounts/web/logins").read_dir().map_or(0, Iterator::count);

    // As whatever keeps what it prints: a file, a pipe, the journal of the machine.
    let mut process = Launch::new(binary()).start(home.path()).unwrap();
    within(HANGS, "the ready line", process.ready()).await.unwrap();
    let page = process.address().await;
    let (_, hint) = within(HANGS, "the hint", process.line(|line| line.contains("open`"))).await;
    assert_eq!(hint.trim(), "(`talaria open` prints a link that logs in)");
    let output = process.output();
    assert!(output.contains(&format!("web chat   {page}/")), "{output}");
    assert!(!output.contains("#login="), "{output}");
    assert_eq!(minted(), 0, "nobody was to use it");
    assert!(insist(&mut process).await.success());

    let mut seat = Seat::at(home.path(), &["run"]);
    seat.reads("`talaria open` prints another").await;
    assert!(seat.text().contains("/#login="), "{}", seat.text());
    assert_eq!(minted(), 1);
    seat.types(CTRL_C);
    assert_eq!(seat.ended().await.code(), Some(0));
}

#[tokio::test]
async fn a_line_is_answered_and_ctrl_d_leaves_the_terminal_as_it_was() {
    let rig = rig().await;
    let mut seat = Seat::take(&rig);
    seat.prompted("").await;
    assert!(!seat.is_as_before(), "the line editor reads key by key");
    seat.says("good morning");
    seat.reads("You said \"good morning\" to me.").await;
    seat.prompted("").await;
    seat.types(CTRL_D);
    assert_eq!(seat.ended().await.code(), Some(0));
    assert!(seat.is_as_before(), "{:?}", tcgetattr(&seat.terminal));
    let left_behind = |seat: &Seat| {
        let screen = seat.screen.lock().unwrap();
        screen.screen().bracketed_paste() || screen.screen().hide_cursor()
    };
    seat.sees("a terminal in its usual modes", |seat| !left_behind(seat)).await;
}

#[tokio::test]
async fn an_answer_is_seen_while_it_is_written() {
    let rig = rig().await;
    let mut seat = Seat::take(&rig);
    seat.prompted("").await;
    rig.llm.hold(Hold::After(3));
    seat.says("good morning");
    seat.reads("You said").await;
    assert!(!seat.text().contains("to me."), "{}", seat.text());
    rig.llm.hold(Hold::Never);
    seat.reads("You said \"good morning\" to me.").await;
    seat.prompted("").await;
    let times = seat.text().matches("You said").count();
    assert_eq!(times, 1, "{}", seat.text());
}

#[tokio::test]
async fn what_is_said_may_have_several_lines() {
    let rig = rig().await;
    let mut seat = Seat::take(&rig);
    seat.prompted("").await;
    seat.says("one\\");
    seat.types("two");
    seat.types(CTRL_J);
    seat.says("three");
    seat.reads(r#"You said "one\ntwo\nthree" to me."#).await;
    seat.prompted("").await;
    // Pasted, line breaks do not send.
    seat.types("\x1b[200~four\nfive\x1b[201~");
    seat.sees("the pasted lines", |seat| seat.line().contains("five")).await;
    seat.types(ENTER);
    seat.reads(r#"You said "four\nfive" to me."#).await;
}

#[tokio::test]
async fn an_earlier_line_comes_back_even_in_the_next_chat() {
    let rig = rig().await;
    let mut seat = Seat::take(&rig);
    seat.prompted("").await;
    for said in ["first", "second"] {
        seat.says(said);
        seat.reads(&format!("You said {said:?}")).await;
        seat.prompted("").await;
    }
    seat.types(UP);
    seat.prompted("second").await;
    seat.types(UP);
    seat.prompted("first").await;
    seat.types(CTRL_C);
    seat.prompted("").await;
    seat.types(CTRL_D);
    assert!(seat.ended().await.success());

    let mut seat = Seat::take(&rig);
    seat.reads("You said \"second\" to me.").await;
    seat.prompted("").await;
    seat.types(UP);
    seat.prompted("second").await;
    rig.llm.script(|_| Reply::Says("Again?".into()));
    seat.types(ENTER);
    seat.reads("Again?").await;
}

#[tokio::test]
async fn tab_completes_a_command() {
    let rig = rig().await;
    let mut seat = Seat::take(&rig);
    seat.prompted("").await;
    seat.types("/sta");
    // What it would become is shown behind it.
    seat.sees("the hint", |seat| seat.line().starts_with("› /status")).await;
    seat.types(TAB);
    seat.prompted("/status").await;
    seat.types(ENTER);
    seat.reads("idle.").await;
}

#[tokio::test]
async fn ctrl_c_stops_the_answer_and_not_the_chat() {
    let rig = rig().await;
    let mut seat = Seat::take(&rig);
    seat.prompted("").await;
    rig.llm.hold(Hold::After(3));
    seat.says("a long story");
    seat.reads("You said").await;
    seat.types(CTRL_C);
    seat.reads("Stopped.").await;
    seat.prompted("").await;
    rig.llm.hold(Hold::Never);
    seat.says("and now");
    seat.reads("and now\" to me.").await;
    seat.prompted("").await;
    // With nothing going on, it takes two.
    seat.types(CTRL_C);
    seat.reads("again").await;
    seat.prompted("").await;
    seat.types(CTRL_C);
    assert!(seat.ended().await.success());
    assert!(seat.is_as_before());
}

#[tokio::test]
async fn a_line_typed_during_an_answer_is_said_and_nothing_is_lost() {
    let rig = rig().await;
    let mut seat = Seat::take(&rig);
    seat.prompted("").await;
    rig.llm.hold(Hold::After(3));
    seat.says("good morning");
    seat.reads("You said").await;
    seat.types("and good");
    seat.prompted("and good").await;
    rig.llm.hold(Hold::Never);
    seat.reads("\"good morning\" to me.").await;
    seat.prompted("and good").await;
    seat.says(" night");
    seat.reads("You said \"and good night\" to me.").await;
}

#[tokio::test]
async fn a_line_said_right_after_another_is_answered_together_with_it() {
    let rig = rig().await;
    let mut seat = Seat::take(&rig);
    seat.prompted("").await;
    rig.llm.hold(Hold::After(3));
    seat.says("a long story");
    seat.reads("You said").await;
    seat.says("what time is it");
    rig.llm.hold(Hold::Never);
    seat.reads("what time is it\" to me.").await;
    assert!(seat.text().contains("You said \"a long story"), "{}", seat.text());
    assert!(!seat.text().contains("Interrupted."), "{}", seat.text());
    seat.prompted("").await;
}

#[tokio::test]
async fn a_question_that_was_left_open_is_shown_first() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    rig.llm.script(asks);
    rig.start().await;
    let (ended, output) = run(rig.home.path(), &["chat", "paint it"]).await;
    assert_eq!(ended.code(), Some(3), "{output}");
    let mut seat = Seat::take(&rig);
    seat.reads("Which colour?").await;
    seat.reads("still open").await;
    seat.prompted("").await;
    seat.says("2");
    seat.reads("The colour is:").await;
    assert!(seat.text().contains("green"), "{}", seat.text());
}
