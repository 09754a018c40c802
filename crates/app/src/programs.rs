//! Programs that the agent may run: those that the configuration names at this moment.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, UNIX_EPOCH};

use async_trait::async_trait;
use talaria_agent::{AsksFirst, Order, Program, Programs, Wraps};
use talaria_clock::Clock;
use talaria_config::{AskBefore, Finding, Loaded, ProgramSettings};
use talaria_machine::{Identity, doubt, is_program, replaceable_in};

use crate::discretion::Discretion;
use crate::quick::{self, Job};

/// How much of what a program prints is passed on, in bytes.
const MOST_PRINTED: usize = 32 * 1024;

/// Programs that are known to run others, or whatever they are told. What they run is not what a digest is made of:
/// it may be something else tomorrow, so nobody approves it for good, whatever the configuration says. No such list
/// is ever complete, and nothing depends on it that the operator has not decided before.
const WRAPPERS: [&str; 47] = [
    "ash",
    "awk",
    "bash",
    "bun",
    "bunx",
    "busybox",
    "cargo",
    "chroot",
    "dash",
    "deno",
    "docker",
    "env",
    "expect",
    "find",
    "fish",
    "flock",
    "gawk",
    "git",
    "java",
    "ksh",
    "lua",
    "make",
    "mawk",
    "nice",
    "node",
    "nohup",
    "npm",
    "npx",
    "parallel",
    "perl",
    "php",
    "podman",
    "python",
    "ruby",
    "script",
    "sed",
    "setsid",
    "sh",
    "ssh",
    "stdbuf",
    "su",
    "sudo",
    "systemd-run",
    "timeout",
    "watch",
    "xargs",
    "zsh",
];

/// The programs of the configuration that applies. One value for every agent: a program that is taken out
/// is not run by a turn that is in hand either, whatever was approved before.
pub(crate) struct NamedPrograms {
    named: RwLock<BTreeMap<String, ProgramSettings>>,
    clock: Arc<dyn Clock>,
    discretion: Arc<Discretion>,
}

impl NamedPrograms {
    /// None, until some are named.
    pub(crate) fn new(clock: &Arc<dyn Clock>, discretion: &Arc<Discretion>) -> Self {
        let (clock, discretion) = (clock.clone(), discretion.clone());
        Self { named: RwLock::default(), clock, discretion }
    }

    /// These are the programs from here on.
    pub(crate) fn set(&self, named: &BTreeMap<String, ProgramSettings>) {
        *self.named.write().unwrap_or_else(PoisonError::into_inner) = named.clone();
    }

    fn named(&self) -> RwLockReadGuard<'_, BTreeMap<String, ProgramSettings>> {
        self.named.read().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Programs for NamedPrograms {
    fn known(&self) -> Vec<Program> {
        let told = |(name, settings): (&String, &ProgramSettings)| Program {
            name: name.clone(),
            about: match settings.free_arguments {
                true => settings.about.clone(),
                false => format!("{} (takes no arguments)", settings.about),
            },
        };
        self.named().iter().map(told).collect()
    }

    fn order(&self, name: &str, more: Vec<String>) -> Result<Order, String> {
        let named = self.named();
        let Some(settings) = named.get(name) else {
            let known: Vec<_> = named.keys().map(String::as_str).collect();
            return Err(format!("there is no program {name:?}; there are {}", known.join(", ")));
        };
        if !settings.free_arguments && !more.is_empty() {
            return Err(format!("{name} takes no arguments"));
        }
        let found = look_at(Path::new(&settings.program))
            .map_err(|why| format!("{name} cannot be run: {why}"))?;
        let mut arguments = settings.arguments.clone();
        arguments.extend(more);
        Ok(Order {
            name: name.to_owned(),
            program: found.path.display().to_string(),
            arguments,
            file: found.identity(),
            asks: match settings.ask {
                AskBefore::Always => AsksFirst::Yes,
                AskBefore::Never => AsksFirst::No,
            },
            wraps: wraps(settings, &found.path),
        })
    }

    async fn run(&self, order: Order) -> Result<String, String> {
        let limit = self.named().get(&order.name).map_or(Duration::ZERO, |settings| settings.limit);
        let mut words = vec![order.program];
        words.extend(order.arguments);
        let job = Job {
            words: &words,
            limit,
            most_shown: MOST_PRINTED,
            folder: Some("/"),
            discretion: &self.discretion,
        };
        quick::run(&job, self.clock.as_ref()).await
    }
}

/// A file that is fit to be run.
struct FoundFile {
    path: PathBuf,
    metadata: Metadata,
    identity: Identity,
}

impl FoundFile {
    /// Changes whenever the file does.
    fn identity(&self) -> String {
        let Self { metadata, identity: Identity { disk, number }, .. } = self;
        // An operating system that does not tell when a file was changed tells its size.
        let changed = metadata.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let changed = changed.unwrap_or_default();
        let (seconds, nanos) = (changed.as_secs(), changed.subsec_nanos());
        format!("{disk}.{number}.{}.{seconds}.{nanos}", metadata.len())
    }
}

/// The file behind a path, if nobody else can have put something else there. Otherwise, what is wrong.
fn look_at(path: &Path) -> Result<FoundFile, String> {
    if !path.is_absolute() {
        return Err("is not a whole path; write it like /usr/bin/uptime".into());
    }
    let path = path.canonicalize().map_err(|error| format!("cannot be found: {error}"))?;
    if path.to_str().is_none() {
        return Err("has a name that is not text".into());
    }
    let unreadable = |error: io::Error| format!("cannot be read: {error}");
    let metadata = path.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err("is not a file".into());
    }
    if !is_program(&path) {
        return Err("is not a program: it may not be executed".into());
    }
    if doubt(&path).map_err(unreadable)?.is_some() {
        return Err("can be changed by others; let only its owner write to it (chmod go-w)".into());
    }
    if let Some(folder) = replaceable_in(&path).map_err(unreadable)? {
        return Err(format!("lies in {}, where others can replace it", folder.display()));
    }
    let identity = Identity::at(&path).map_err(unreadable)?;
    Ok(FoundFile { path, metadata, identity })
}

/// Whether what a program does may be another thing each time: by what the operator lets it be given, and by its
/// name.
fn wraps(settings: &ProgramSettings, found: &Path) -> Wraps {
    match (settings.free_arguments, settings.always) {
        (true, false) => Wraps::Others,
        (true, true) | (false, _) => known_to_wrap(&settings.program, found),
    }
}

/// By the name that the operator gave and by the name of the file behind it, without a version.
fn known_to_wrap(written: &str, found: &Path) -> Wraps {
    let is_wrapper = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
        WRAPPERS.contains(&bare) || WRAPPERS.contains(&name.as_str())
    };
    match is_wrapper(Path::new(written)) || is_wrapper(found) {
        true => Wraps::Others,
        false => Wraps::Nothing,
    }
}

/// What is wrong with the programs that a configuration names.
pub(crate) fn problems(loaded: &Loaded) -> Vec<Finding> {
    let wrong = |(name, settings): (&String, &ProgramSettings)| {
        let why = look_at(Path::new(&settings.program)).err()?;
        let path = format!("agent.programs.{name}.program");
        Some(loaded.object(&path, &settings.program, why))
    };
    loaded.config().agent.programs.iter().filter_map(wrong).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use talaria_clock::SystemClock;

    use super::*;

    /// A folder that nobody else can write to, with a program in it.
    fn script(text: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        (folder, path)
    }

    fn settings(program: &Path) -> ProgramSettings {
        ProgramSettings {
            program: program.display().to_string(),
            about: "a test".into(),
            arguments: vec!["first".into()],
            free_arguments: true,
            ask: AskBefore::Always,
            always: false,
            limit: Duration::from_secs(10),
        }
    }

    fn programs(settings: ProgramSettings) -> NamedPrograms {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let known = BTreeMap::from([("it".to_owned(), settings)]);
        let programs = NamedPrograms::new(&clock, &Discretion::new());
        programs.set(&known);
        programs
    }

    #[tokio::test]
    async fn arguments_reach_a_program_as_they_are() {
        let (_folder, path) = script("for a in \"$@\"; do echo \"<$a>\"; done; pwd");
        let programs = programs(settings(&path));
        let more = ["; rm -rf /", "$(id)", "a b", "*"].map(str::to_owned).to_vec();
        let order = programs.order("it", more).unwrap();
        let printed = programs.run(order).await.unwrap();
        assert_eq!(printed, "```\n<first>\n<; rm -rf />\n<$(id)>\n<a b>\n<*>\n/\n```");
    }

    #[tokio::test]
    async fn a_program_that_takes_too_long_is_ended() {
        let (_folder, path) = script("echo begun; sleep 1000");
        let limit = Duration::from_millis(300);
        let programs = programs(ProgramSettings { limit, ..settings(&path) });
        let order = programs.order("it", Vec::new()).unwrap();
        let ended = programs.run(order).await.unwrap_err();
        assert!(ended.starts_with("I ended the command after"), "{ended}");
    }

    #[test]
    fn only_what_is_named_is_run_and_only_with_what_it_may_be_given() {
        let (_folder, path) = script("true");
        let fixed = ProgramSettings { free_arguments: false, ..settings(&path) };
        let programs = programs(fixed);
        assert!(programs.order("that", Vec::new()).is_err());
        assert!(programs.order("it", vec!["more".into()]).is_err());
        let order = programs.order("it", Vec::new()).unwrap();
        assert_eq!(order.arguments, ["first"]);
        assert_eq!(order.asks, AsksFirst::Yes);
        assert_eq!(order.wraps, Wraps::Nothing);
    }

    #[test]
    fn a_program_that_is_taken_out_is_known_to_nobody() {
        let (_folder, path) = script("true");
        let programs = programs(settings(&path));
        assert!(programs.order("it", Vec::new()).is_ok());
        programs.set(&BTreeMap::new());
        assert!(programs.order("it", Vec::new()).is_err() && programs.known().is_empty());
    }

    #[test]
    fn a_program_is_approved_for_good_only_where_the_operator_has_said_what_it_is_given() {
        let (folder, _) = script("true");
        // Nobody can name everything that runs others.
        for name in ["doas", "pkexec", "unshare", "tclsh", "uv", "go", "tar", "my-own-tool"] {
            let path = folder.path().join(name);
            fs::copy(folder.path().join("program"), &path).unwrap();
            for (free_arguments, always, expected) in [
                (true, false, Wraps::Others),
                (true, true, Wraps::Nothing),
                (false, false, Wraps::Nothing),
                (false, true, Wraps::Nothing),
            ] {
                let settings = ProgramSettings { free_arguments, always, ..settings(&path) };
                let order = programs(settings).order("it", Vec::new()).unwrap();
                assert_eq!(order.wraps, expected, "{name} {free_arguments} {always}");
            }
        }
        // What these run is in no digest, whatever they are given.
        for (free_arguments, always) in [(true, true), (false, false), (false, true)] {
            let shell = Path::new("/bin/sh");
            let settings = ProgramSettings { free_arguments, always, ..settings(shell) };
            let order = programs(settings).order("it", Vec::new()).unwrap();
            assert_eq!(order.wraps, Wraps::Others, "{free_arguments} {always}");
        }
    }

    #[test]
    fn a_file_that_changes_is_another_order() {
        let (_folder, path) = script("true");
        let programs = programs(settings(&path));
        let before = programs.order("it", Vec::new()).unwrap();
        assert_eq!(programs.order("it", Vec::new()).unwrap(), before);
        fs::write(&path, "#!/bin/sh\necho something else\n").unwrap();
        assert_ne!(programs.order("it", Vec::new()).unwrap().file, before.file);
    }

    #[test]
    fn what_others_can_change_is_not_run() {
        let (folder, path) = script("true");
        assert!(look_at(&path).is_ok());
        for mode in [0o775, 0o757, 0o777] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert!(look_at(&path).is_err_and(|why| why.contains("changed by others")), "{mode:o}");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(look_at(&path).is_err_and(|why| why.contains("not a program")));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        for mode in [0o777, 0o775] {
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();
            assert!(look_at(&path).is_err_and(|why| why.contains("replace it")), "{mode:o}");
        }
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        assert!(look_at(folder.path()).is_err_and(|why| why.contains("not a file")));
        assert!(look_at(Path::new("program")).is_err_and(|why| why.contains("whole path")));
        assert!(look_at(Path::new("/nowhere/at/all")).is_err_and(|why| why.contains("found")));
    }

    #[test]
    fn what_runs_others_is_known_under_any_name() {
        let (folder, path) = script("true");
        for (name, expected) in [
            ("uptime", Wraps::Nothing),
            ("bash", Wraps::Others),
            ("python3.12", Wraps::Others),
            ("SUDO", Wraps::Others),
            ("perl5", Wraps::Others),
            ("shop", Wraps::Nothing),
        ] {
            assert_eq!(known_to_wrap(&format!("/usr/bin/{name}"), &path), expected, "{name}");
        }
        let shell = folder.path().join("harmless");
        symlink("/bin/sh", &shell).unwrap();
        let found = look_at(&shell).unwrap();
        assert_eq!(known_to_wrap("/home/me/harmless", &found.path), Wraps::Others);
    }
}
