//! `cargo xtask windows`: builds the program for Windows and tries it under Wine.
//!
//! It needs three things that cargo does not bring: Rust's own library for the target, the compiler of
//! mingw, and Wine. What is missing is said before anything begins.

#![allow(clippy::disallowed_methods, reason = "it waits for programs of others")]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use crate::{installed, shell};

const TARGET: &str = "x86_64-pc-windows-gnu";
const COMPILER: &str = "x86_64-w64-mingw32-gcc";

/// What Wine cannot keep, so that nothing can be asserted about it there.
const BEYOND_WINE: [(&str, &str); 4] = [
    (
        "private::system::tests::what_is_open_to_everybody_is_told_and_closed",
        "it adds to a list what the folder above lets in",
    ),
    (
        "private::tests::what_is_made_for_us_is_open_to_nobody_else",
        "it adds to a list what the folder above lets in",
    ),
    (
        "folder::tests::files_are_made_for_this_user_alone_and_come_back",
        "it adds to a list what the folder above lets in",
    ),
    (
        "door::system::tests::a_second_process_cannot_open_the_same_door",
        "it lets a second process have a pipe that wants to be the first of its name",
    ),
];

/// Stands in for a library that Wine has since version 9, and without which no program of Rust starts.
const RANDOM: &str = "#include <windows.h>\n#include <ntsecapi.h>\n\
    __declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE bytes, SIZE_T length)\n\
    { return RtlGenRandom(bytes, (ULONG)length); }\n";

/// Where the manager of services has its settings, and the service of a trial.
const CONTROL: &str = r"HKLM\System\CurrentControlSet\Control";
const SERVICE: &str = r"HKLM\System\CurrentControlSet\Services\talaria";

/// How long a gateway may take to answer, and a command to end.
const PATIENCE: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(100);

#[derive(Args)]
pub(crate) struct Options {
    /// The program that runs programs of Windows
    #[arg(long, default_value = "wine")]
    wine: String,
    /// Only build it and look at it with clippy
    #[arg(long)]
    build: bool,
}

/// Looks at all of it with the compiler for Windows, without running any of it. Rust's library for the target is
/// no package of any registry: where it is neither there nor to be had, that is said.
pub(crate) fn check(root: &Path) -> Result<()> {
    if !has_library()? {
        let added = Command::new("rustup").args(["target", "add", TARGET]).status();
        if !added.is_ok_and(|status| status.success()) {
            eprintln!(
                "windows: NOT LOOKED AT, because Rust's library for {TARGET} is not here and cannot be had; \
                 `cargo xtask windows` on a machine where `rustup target add` works looks at it"
            );
            return Ok(());
        }
    }
    installed::mingw(COMPILER)?;
    lint(root)
}

fn lint(root: &Path) -> Result<()> {
    for what in [&["talaria"][..], &["talaria-machine", "--all-targets"]] {
        let clippy = ["clippy", "--locked", "--target", TARGET, "--package"];
        let words: Vec<_> =
            clippy.iter().chain(what).chain(&["--", "-D", "warnings"]).copied().collect();
        shell::run(&mut shell::cargo(root, &words))?;
    }
    Ok(())
}

pub(crate) fn run(root: &Path, options: &Options) -> Result<()> {
    need(options)?;
    lint(root)?;
    let build = ["build", "--locked", "--target", TARGET, "--package", "talaria"];
    shell::run(&mut shell::cargo(root, &build))?;
    if options.build {
        return Ok(());
    }
    let place = target(root).join("wine");
    fs::create_dir_all(&place)?;
    let wine = Wine { program: options.wine.clone(), prefix: place.join("prefix") };
    wine.begin(&place)?;
    let _company = wine.keep_up()?;
    let talaria = target(root).join(TARGET).join("debug").join("talaria.exe");
    let trial = Trial { wine: &wine, talaria, home: place.join("home"), said: place.join("said") };
    let outcome = wine.test(root).and_then(|()| trial.run());
    // Also of a trial that failed, nothing goes on.
    let ended = wine.end();
    outcome.and(ended)?;
    eprintln!("windows: it builds, answers by hand and as a service, and ends in good order");
    Ok(())
}

fn target(root: &Path) -> PathBuf {
    let given = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    given.unwrap_or_else(|| root.join("target"))
}

/// Says what is missing, all of it at once.
fn need(options: &Options) -> Result<()> {
    let mut missing = Vec::new();
    if !has_library()? {
        missing.push(format!("Rust's library for {TARGET}: `rustup target add {TARGET}`"));
    }
    if !shell::exists(COMPILER) {
        missing.push(format!("{COMPILER}: on Debian, the package gcc-mingw-w64-x86-64"));
    }
    if !options.build && !shell::exists(&options.wine) {
        missing.push(format!("{}: on Debian, the packages wine and wine64", options.wine));
    }
    ensure!(
        missing.is_empty(),
        "this cannot be tried here, for want of\n  {}",
        missing.join("\n  ")
    );
    Ok(())
}

fn has_library() -> Result<bool> {
    let sysroot = shell::read(Command::new("rustc").args(["--print", "sysroot"]))?;
    Ok(Path::new(sysroot.trim()).join("lib/rustlib").join(TARGET).join("lib").is_dir())
}

struct Wine {
    program: String,
    prefix: PathBuf,
}

impl Wine {
    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.env("WINEPREFIX", &self.prefix).env("WINEDEBUG", "-all");
        command
    }

    /// Makes the prefix, gives it what an older Wine lacks, and takes from it what a trial has left there
    /// that did not come to its end.
    fn begin(&self, place: &Path) -> Result<()> {
        shell::run(self.command().args(["wineboot", "--init"]))?;
        let system = self.prefix.join("drive_c/windows/system32");
        let library = system.join("bcryptprimitives.dll");
        if !library.exists() {
            let source = place.join("bcryptprimitives.c");
            fs::write(&source, RANDOM)?;
            let mut compile = Command::new(COMPILER);
            compile.args(["-shared", "-O1", "-o"]).args([&library, &source]).arg("-ladvapi32");
            shell::run(&mut compile)?;
        }
        // A service starts with the prefix. Its manager could take it out only when it has ended.
        let mut forget = self.command();
        forget.args(["reg", "delete", SERVICE, "/f"]).stdout(Stdio::null()).stderr(Stdio::null());
        // There is seldom one.
        forget.status().context("cannot run wine")?;
        // Wine's manager gives a process ten seconds to say which service it is, and that of Windows
        // thirty. What is a number for Windows, Wine reads only as a text.
        let longest = PATIENCE.as_millis().to_string();
        let wait = ["/v", "ServicesPipeTimeout", "/t", "REG_SZ", "/d", &longest, "/f"];
        shell::run(self.command().args(["reg", "add", CONTROL]).args(wait).stdout(Stdio::null()))?;
        // The manager reads that when it starts.
        self.end()
    }

    /// Is there for as long as what this returns. Wine ends its services soon after the last program that
    /// is none, which may be between two commands.
    fn keep_up(&self) -> Result<Child> {
        let mut shell = self.command();
        shell.arg("cmd").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        shell.spawn().context("cannot run wine")
    }

    /// The tests of what depends on the operating system.
    fn test(&self, root: &Path) -> Result<()> {
        let mut words =
            vec!["test", "--locked", "--target", TARGET, "--package", "talaria-machine", "--"];
        for (test, why) in BEYOND_WINE {
            eprintln!("not asserted under Wine, because {why}: {test}");
            words.extend(["--skip", test]);
        }
        let runner = "CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER";
        let mut tests = shell::cargo(root, &words);
        tests.env(runner, &self.program).env("WINEPREFIX", &self.prefix).env("WINEDEBUG", "-all");
        shell::run(&mut tests)
    }

    /// Ends everything that runs in the prefix.
    fn end(&self) -> Result<()> {
        shell::run(self.command().args(["wineboot", "--kill", "--shutdown"]))
    }
}

/// A gateway in its first minutes.
struct Trial<'a> {
    wine: &'a Wine,
    talaria: PathBuf,
    home: PathBuf,
    /// What the last command printed.
    said: PathBuf,
}

impl Trial<'_> {
    fn run(&self) -> Result<()> {
        remove(&self.home)?;
        fs::create_dir_all(&self.home)?;
        // Nobody else's port.
        fs::write(self.home.join("config.yaml"), "http:\n  listen: 127.0.0.1:0\n")?;
        self.expect(&["--version"], 0, "talaria ")?;
        self.expect(&["config", "check"], 0, "")?;
        self.expect(&["status"], 1, "")?;
        self.by_hand()?;
        self.as_service()
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.wine.command();
        let home = format!("Z:{}", self.home.display().to_string().replace('/', "\\"));
        command.arg(&self.talaria).args(words).env("TALARIA_HOME", home).stdin(Stdio::null());
        command
    }

    /// Starts a gateway, which prints what it does.
    fn start(&self, words: &[&str]) -> Result<Child> {
        eprintln!("→ talaria {} &", words.join(" "));
        self.command(words).stdout(Stdio::null()).spawn().context("cannot run wine")
    }

    /// Runs a command, and returns what it printed.
    fn ask(&self, words: &[&str]) -> Result<(Option<i32>, String)> {
        eprintln!("→ talaria {}", words.join(" "));
        // Into a file and not a pipe, which would stay open for as long as what the command has started.
        // Into one of its own each time, because that may go on to write.
        remove(&self.said)?;
        let file = File::create(&self.said)?;
        let mut command = self.command(words);
        command.stdout(file.try_clone()?).stderr(file);
        let mut command = command.spawn().context("cannot run wine")?;
        let ended = wait(&mut command, &format!("`talaria {}`", words.join(" ")));
        let text = String::from_utf8_lossy(&fs::read(&self.said)?).replace('\r', "");
        eprintln!("{}", text.trim_end());
        Ok((ended?, text))
    }

    fn expect(&self, words: &[&str], code: i32, says: &str) -> Result<()> {
        let (ended, text) = self.ask(words)?;
        let words = words.join(" ");
        let known = ended.map_or("a signal".to_owned(), |ended| format!("code {ended}"));
        ensure!(ended == Some(code), "`talaria {words}` ended with {known}, not with {code}");
        ensure!(text.contains(says), "`talaria {words}` does not say {says:?}");
        Ok(())
    }

    /// A gateway in the foreground: it answers, a second one is refused, another takes its place, and it
    /// ends in good order.
    fn by_hand(&self) -> Result<()> {
        let mut first = self.start(&["run"])?;
        self.until_it_answers(&mut first)?;
        self.expect(&["chat", "hello", "from", "windows"], 0, "built-in demo")?;
        self.expect(&["run"], 4, "is already running")?;
        let mut second = self.start(&["run", "--replace"])?;
        let ended = wait(&mut first, "the gateway whose place was taken")?;
        ensure!(ended == Some(0), "whose place was taken ended with {ended:?}");
        self.until_it_answers(&mut second)?;
        self.expect(&["sessions", "list"], 0, "hello from windows")?;
        self.expect(&["restart"], 0, "It is back")?;
        // The one that was restarted goes on in a process beside it.
        let ended = wait(&mut second, "the gateway that was restarted")?;
        ensure!(ended == Some(0), "what was restarted ended with {ended:?}");
        self.expect(&["stop"], 0, "is ending")?;
        self.expect(&["status"], 1, "asked to stop")?;
        // Wine lets others in, which is what the doctor is there to say.
        let (_, found) = self.ask(&["doctor", "--offline"])?;
        ensure!(found.contains("home"), "the doctor does not look at the home");
        Ok(())
    }

    fn until_it_answers(&self, gateway: &mut Child) -> Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if let Some(status) = gateway.try_wait()? {
                bail!("the gateway ended with {status}");
            }
            if self.command(&["status"]).stdout(Stdio::null()).status()?.success() {
                return Ok(());
            }
            std::thread::sleep(LOOK);
        }
        bail!("the gateway does not answer")
    }

    /// The same by the service control manager.
    fn as_service(&self) -> Result<()> {
        self.expect(&["service", "install"], 2, "add --system")?;
        self.expect(&["service", "status", "--system"], 1, "there is no service")?;
        self.expect(&["service", "install", "--system"], 0, "is installed and runs")?;
        self.expect(&["service", "status", "--system"], 0, "running")?;
        let listed = self.wine.command().args(["sc", "query", "talaria"]).output()?;
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        eprintln!("→ sc query talaria\n{}", listed.trim_end());
        ensure!(listed.contains("RUNNING"), "the manager does not say that it runs");
        self.expect(&["chat", "hello", "service"], 0, "built-in demo")?;
        self.expect(&["service", "uninstall", "--system"], 0, "is gone")?;
        self.expect(&["service", "status", "--system"], 1, "there is no service")?;
        self.expect(&["status"], 1, "the service manager stops it")?;
        Ok(())
    }
}

fn wait(process: &mut Child, who: &str) -> Result<Option<i32>> {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        if let Some(status) = process.try_wait()? {
            return Ok(status.code());
        }
        std::thread::sleep(LOOK);
    }
    process.kill()?;
    bail!("{who} does not end")
}

/// Removes a file or folder that may not be there.
fn remove(path: &Path) -> Result<()> {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match removed {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}
