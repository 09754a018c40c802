//! Runs a program that the configuration knows, and says what it printed.
//!
//! Its words reach it as they are; nothing reads them in between. It gets no secrets in its environment, little time, and nothing that it leaves running outlives it.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use talaria_clock::Clock;
use talaria_machine::{Output, Started, environment, output};
use tokio::io::AsyncReadExt;
use tokio::process::Command;

use crate::discretion::Discretion;

/// How long a program may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

/// How much of what it prints is shown, in bytes.
const MOST_SHOWN: usize = 8 * 1024;

/// A program to run.
#[derive(Clone, Copy)]
pub(crate) struct Job<'a> {
    /// The program and its arguments.
    pub(crate) words: &'a [String],
    /// How long it may take.
    pub(crate) limit: Duration,
    /// How much of what it prints is shown, in bytes.
    pub(crate) most_shown: usize,
    /// Where it runs; where we do, if that is not said.
    pub(crate) folder: Option<&'a str>,
    /// What is not shown of what it prints.
    pub(crate) discretion: &'a Discretion,
}

impl<'a> Job<'a> {
    /// A command of the configuration.
    pub(crate) fn quick(words: &'a [String], discretion: &'a Discretion) -> Self {
        Self { words, limit: LIMIT, most_shown: MOST_SHOWN, folder: None, discretion }
    }
}

/// Runs a program to its end. Says what it printed, or in a whole sentence what went wrong. Dropped, it
/// ends the program and all that it started.
pub(crate) async fn run(job: &Job<'_>, clock: &dyn Clock) -> Result<String, String> {
    let mut running = Running::start(job)?;
    let mut printed = Printed { most: job.most_shown, ..Printed::default() };
    let ended = tokio::select! {
        ended = running.finish(&mut printed) => Some(ended),
        () = clock.sleep(job.limit) => None,
    };
    drop(running);
    match ended {
        Some(Ok(status)) => Ok(told(&printed.shown(Until::ItsEnd, job.discretion), status)),
        Some(Err(error)) => Err(format!("The command could not be run: {error}.")),
        None => {
            let limit = job.limit.as_secs();
            let text = printed.shown(Until::WeEndedIt, job.discretion);
            Err(format!("I ended the command after {limit} seconds.\n\n{text}").trim().to_owned())
        }
    }
}

/// A program and all that it started.
struct Running {
    program: Started,
    output: Output,
}

impl Running {
    fn start(job: &Job<'_>) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("The command could not be started: {error}.");
        let [program, arguments @ ..] = job.words else {
            return Err("There is no command.".into());
        };
        // One pipe for both, so that what was printed stays in its order.
        let (output, writer) = output().map_err(failed)?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .envs(environment())
            .stdin(Stdio::null())
            .stdout(writer.try_clone().map_err(failed)?)
            .stderr(writer);
        if let Some(folder) = job.folder {
            command.current_dir(folder);
        }
        Ok(Self { program: Started::start(command).map_err(failed)?, output })
    }

    async fn finish(&mut self, printed: &mut Printed) -> std::io::Result<ExitStatus> {
        let status = loop {
            tokio::select! {
                read = self.output.read_buf(&mut printed.fresh) => {
                    if read? == 0 {
                        break self.program.wait().await?;
                    }
                    printed.take();
                }
                status = self.program.wait() => break status?,
            }
        };
        // What it left running would keep the pipe open.
        self.program.end();
        while self.output.read_buf(&mut printed.fresh).await? > 0 {
            printed.take();
        }
        Ok(status)
    }
}

/// For how long a program has printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    ItsEnd,
    WeEndedIt,
}

/// The beginning of what was printed.
#[derive(Default)]
struct Printed {
    kept: Vec<u8>,
    fresh: Vec<u8>,
    left_out: usize,
    most: usize,
}

impl Printed {
    fn take(&mut self) {
        let room = self.most.saturating_sub(self.kept.len()).min(self.fresh.len());
        self.kept.extend_from_slice(&self.fresh[..room]);
        self.left_out += self.fresh.len() - room;
        self.fresh.clear();
    }

    /// As a block that what was printed cannot end. Where it is no more than the beginning, it does not end in
    /// the middle of a secret, which nobody would know by its first half.
    fn shown(&self, until: Until, discretion: &Discretion) -> String {
        let text = talaria_render::visible(&String::from_utf8_lossy(&self.kept));
        let text = match (self.left_out, until) {
            (0, Until::ItsEnd) => text,
            // The cut may be in a letter, too.
            _ => discretion.clean_so_far(text.trim_end_matches(char::REPLACEMENT_CHARACTER)),
        };
        let text = text.trim_end();
        if text.is_empty() {
            return String::new();
        }
        let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
        let fence = "`".repeat((longest + 1).max(3));
        let cut = match self.left_out {
            0 => String::new(),
            bytes => format!("\n… and {bytes} more bytes."),
        };
        format!("{fence}\n{text}\n{fence}{cut}")
    }
}

fn told(text: &str, status: ExitStatus) -> String {
    match (status.success(), text.is_empty()) {
        (true, true) => "Done.".to_owned(),
        (true, false) => text.to_owned(),
        (false, _) => format!("{text}\n\nIt ended with {status}.").trim().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talaria_clock::SystemClock;
    use talaria_config::{Sources, load};

    fn shell(line: &str) -> Vec<String> {
        ["/bin/sh", "-c", line].map(str::to_owned).to_vec()
    }

    async fn ran(line: &str) -> Result<String, String> {
        run(&Job::quick(&shell(line), &Discretion::new()), &SystemClock).await
    }

    #[tokio::test]
    async fn what_is_cut_shows_no_beginning_of_a_secret() {
        let yaml = "providers: {p: {api_key: cänary-5d41402abc4b2a76}}";
        let loaded = load(Sources::default().with_config(yaml), talaria_platforms::ALL).unwrap();
        let discretion = Discretion::new();
        discretion.learn(&loaded);
        let words = shell("printf 'it is cänary-5d41402abc4b2a76, really'");
        let job = Job::quick(&words, &discretion);
        let whole = run(&job, &SystemClock).await.unwrap();
        assert_eq!(discretion.clean(&whole), "```\nit is (hidden), really\n```");
        // The eighth byte is half of a letter.
        for most_shown in 8..30 {
            let cut = run(&Job { most_shown, ..job }, &SystemClock).await.unwrap();
            let cut = discretion.clean(&cut);
            assert!(!cut.contains("än") && cut.starts_with("```\nit is"), "{most_shown}: {cut}");
            assert!(cut.ends_with("more bytes."), "{most_shown}: {cut}");
        }
        // What ends by itself like the beginning of one is no part of it.
        let words = shell("printf 'it is cänary-5d41'");
        let alike = run(&Job { words: &words, ..job }, &SystemClock).await.unwrap();
        assert_eq!(alike, "```\nit is cänary-5d41\n```");
        // What we end may have had more to say.
        let printed = Printed { kept: "it is cänary-5d41".into(), ..Printed::default() };
        assert_eq!(printed.shown(Until::WeEndedIt, &discretion), "```\nit is\n```");
    }

    #[tokio::test]
    async fn what_it_prints_is_said_in_its_order() {
        assert_eq!(
            ran("echo one; echo two >&2; echo three").await.unwrap(),
            "```\none\ntwo\nthree\n```"
        );
        assert_eq!(ran("true").await.unwrap(), "Done.");
        assert_eq!(ran("echo '```'").await.unwrap(), "````\n```\n````");
        let failed = ran("echo no; exit 3").await.unwrap();
        assert!(failed.ends_with("It ended with exit status: 3."), "{failed}");
    }

    #[tokio::test]
    async fn a_program_that_is_not_there_is_said() {
        let words = ["/nowhere/at/all".to_owned()];
        let nowhere = run(&Job::quick(&words, &Discretion::new()), &SystemClock).await.unwrap_err();
        assert!(nowhere.starts_with("The command could not be started"), "{nowhere}");
    }

    #[tokio::test]
    async fn much_output_is_cut_and_control_characters_are_not_shown() {
        let much = ran("i=0; while [ $i -lt 3000 ]; do echo abcdefgh; i=$((i+1)); done").await;
        let much = much.unwrap();
        assert!(much.len() < MOST_SHOWN + 100 && much.ends_with("more bytes."), "{}", much.len());
        assert_eq!(ran("printf '\\033[31mred\\033[0m'").await.unwrap(), "```\nred\n```");
    }

    #[tokio::test]
    async fn it_gets_no_secrets() {
        let environment = ran("env | cut -d= -f1").await.unwrap();
        for name in environment.lines().filter(|line| !line.starts_with('`')) {
            // A shell makes these for itself.
            let own = ["PWD", "OLDPWD", "SHLVL", "_"];
            assert!(talaria_machine::PASSED_ON.contains(&name) || own.contains(&name), "{name}");
        }
    }

    #[tokio::test]
    async fn what_it_leaves_running_does_not_outlive_it() {
        let left = ran("sleep 1000 & echo $!").await.unwrap();
        let id: i32 = left.lines().nth(1).unwrap().parse().unwrap();
        let is_there = || {
            let state = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
            state.split(") ").nth(1).is_some_and(|rest| !rest.starts_with('Z'))
        };
        tokio::time::timeout(Duration::from_secs(10), async {
            while is_there() {
                tokio::task::yield_now().await;
            }
        })
        .await
        .expect("it is gone");
    }

    #[tokio::test]
    async fn it_is_ended_with_its_children_when_it_takes_too_long() {
        struct Impatient;
        impl Clock for Impatient {
            fn now(&self) -> talaria_model::Timestamp {
                talaria_model::Timestamp::default()
            }
            fn sleep(&self, _: Duration) -> talaria_clock::Sleep {
                SystemClock.sleep(Duration::from_millis(200))
            }
        }
        let words = shell("echo begun; sleep 1000 | sleep 1000");
        let slow = run(&Job::quick(&words, &Discretion::new()), &Impatient).await.unwrap_err();
        assert!(slow.starts_with("I ended the command after 30 seconds."), "{slow}");
    }
}
