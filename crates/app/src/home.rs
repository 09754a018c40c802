//! The home folder: where it is, who may use it, and that only one gateway does.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use talaria_machine::{Mode, Private, belongs_to_us, close, close_command, make_for_us, open_to};

use crate::exit::{Exit, Halt};

/// What we write in it.
const OURS: [&str; 19] = [
    "state.db",
    "state.db-wal",
    "state.db-shm",
    "search.db",
    "search.db-wal",
    "search.db-shm",
    "files",
    "accounts",
    "homes.json",
    "paused.json",
    "last-good",
    "gateway.lock",
    "gateway.pid",
    "gateway_state.json",
    "logs",
    "backups",
    "restoring",
    "voice",
    ".gateway-starts.json",
];

/// What a person puts there.
const THEIRS: [&str; 3] = ["config.yaml", ".env", "hooks"];

/// The folder that holds everything a gateway keeps.
#[derive(Debug, Clone)]
pub(crate) struct Home {
    path: PathBuf,
}

/// Proof that no other gateway uses the home. The operating system takes it back when we die.
pub(crate) struct HomeLock {
    _file: File,
}

impl Home {
    /// `TALARIA_HOME`, else `.talaria` in the user's own folder.
    pub(crate) fn find() -> Result<Self, Halt> {
        let given = std::env::var_os("TALARIA_HOME").filter(|path| !path.is_empty());
        let path = match given {
            Some(path) => PathBuf::from(path),
            None => std::env::home_dir()
                .ok_or_else(|| {
                    Halt::new(Exit::Misused, "it is not known where your files are")
                        .hint("set TALARIA_HOME to a folder")
                })?
                .join(".talaria"),
        };
        Ok(Self::at(&path))
    }

    /// The home in this folder.
    pub(crate) fn at(path: &Path) -> Self {
        Self { path: std::path::absolute(path).unwrap_or_else(|_| path.to_owned()) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.path.join("gateway.sock")
    }

    pub(crate) fn files(&self) -> PathBuf {
        self.path.join("files")
    }

    /// Where programs work that listen and speak.
    pub(crate) fn voice(&self) -> PathBuf {
        self.path.join("voice")
    }

    /// What gateways wrote about themselves.
    pub(crate) fn logs(&self) -> PathBuf {
        self.path.join("logs")
    }

    /// Where the homes of the accounts are kept.
    pub(crate) fn homes(&self) -> PathBuf {
        self.path.join("homes.json")
    }

    /// Where it is kept which accounts are paused.
    pub(crate) fn paused(&self) -> PathBuf {
        self.path.join("paused.json")
    }

    /// Where the last configuration is kept that worked.
    pub(crate) fn last_good(&self) -> PathBuf {
        self.path.join("last-good")
    }

    /// Where the operator's hooks are.
    pub(crate) fn hooks(&self) -> PathBuf {
        self.path.join("hooks")
    }

    /// Where backups go that nobody names another place for.
    pub(crate) fn backups(&self) -> PathBuf {
        self.path.join("backups")
    }

    /// Where a backup waits to take the place of what is there.
    pub(crate) fn restoring(&self) -> PathBuf {
        self.path.join("restoring")
    }

    /// The private folder of an account.
    pub(crate) fn account(&self, account: &str) -> PathBuf {
        self.path.join("accounts").join(account)
    }

    /// Everything that we write in it, as far as it has a place of its own, and what each account has.
    pub(crate) fn ours(&self) -> impl Iterator<Item = PathBuf> {
        let accounts = fs::read_dir(self.path.join("accounts")).into_iter().flatten().flatten();
        let kept = OURS.iter().map(|name| self.path.join(name));
        kept.chain(accounts.map(|account| account.path()))
    }

    /// Makes the folder, for nobody but this user.
    pub(crate) fn prepare(&self) -> Result<(), Halt> {
        if let Some(obstacle) = self.obstacle() {
            return Err(Halt::new(Exit::Misused, obstacle).hint(ELSEWHERE));
        }
        let cannot = |error: io::Error| {
            Halt::failed(format_args!("cannot use {} as home: {error}", self.path.display()))
                .hint("set TALARIA_HOME to a folder that you can write to")
        };
        make_for_us(&self.path).map_err(cannot)?;
        if !belongs_to_us(&self.path).map_err(cannot)? {
            let problem = format!("{} belongs to another user", self.path.display());
            return Err(Halt::new(Exit::Misused, problem)
                .hint("run talaria as that user, or set TALARIA_HOME to a folder of your own"));
        }
        // A home may be a link to where there is room.
        let real = fs::canonicalize(&self.path).map_err(cannot)?;
        let holds_something = self.look_at_state()?;
        match open_to(&real) {
            Some(how) if holds_something => return Err(is_open(&real, &how)),
            // Whoever else uses it would be shut out.
            Some(how) if self.holds_foreign_things().map_err(cannot)? => {
                return Err(is_shared(&real, &how));
            }
            // A folder that somebody made for us, as folders are made.
            Some(_) => close(&real).map_err(cannot)?,
            None => {}
        }
        self.try_writing().map_err(cannot)
    }

    /// Says what stands where the home is to be, or a folder above it, and is no folder. A link to nowhere is
    /// not told: what it leads to may be mounted later.
    pub(crate) fn obstacle(&self) -> Option<String> {
        let mut above = self.path.ancestors();
        let (path, found) = above.find_map(|path| Some((path, fs::metadata(path).ok()?)))?;
        (!found.is_dir()).then(|| {
            let home = self.path.display();
            format!("cannot use {home} as home: {} is not a folder", path.display())
        })
    }

    /// Refuses a home in which something that we write to is somebody's link to elsewhere, or is open to
    /// others: who could read it may have, and whoever runs this has to know. Says whether anything is there.
    fn look_at_state(&self) -> Result<bool, Halt> {
        let mut is_there = false;
        for path in self.ours() {
            let Ok(found) = fs::symlink_metadata(&path) else { continue };
            is_there = true;
            if found.is_symlink() {
                return Err(Halt::new(Exit::Misused, is_a_link(&path)).hint(IN_ITS_PLACE));
            }
            if let Some(how) = open_to(&path) {
                return Err(is_open(&path, &how));
            }
        }
        Ok(is_there)
    }

    /// Whether anything lies there that neither we nor a person who sets us up would put there.
    fn holds_foreign_things(&self) -> io::Result<bool> {
        for entry in fs::read_dir(&self.path)? {
            let name = entry?.file_name();
            let is_expected = |known: &&str| name == *known;
            if !OURS.iter().chain(&THEIRS).any(is_expected) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn try_writing(&self) -> io::Result<()> {
        let probe = self.path.join(".probe");
        fs::write(&probe, b"")?;
        fs::remove_file(probe)
    }

    /// Takes the home for this process.
    pub(crate) fn lock(&self) -> Result<HomeLock, Halt> {
        let path = self.path.join("gateway.lock");
        let cannot = |error: io::Error| {
            Halt::failed(format_args!("cannot lock {}: {error}", path.display()))
                .hint("the home folder has to be on a local disk")
        };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .private()
            .no_link()
            .open(&path)
            .map_err(cannot)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                let holder = match file.read_to_string(&mut holder) {
                    Ok(_) if !holder.trim().is_empty() => format!(" (process {})", holder.trim()),
                    _ => String::new(),
                };
                return Err(Halt::new(
                    Exit::AlreadyRunning,
                    format_args!(
                        "a gateway{holder} is already running on {}",
                        self.path.display()
                    ),
                )
                .hint("talk to it with `talaria chat`, end it with `talaria stop`, take its place with `talaria run --replace`, or set TALARIA_HOME to run a second one"));
            }
            Err(TryLockError::Error(error)) => return Err(cannot(error)),
        }
        file.set_len(0).map_err(cannot)?;
        write!(file, "{}", std::process::id()).map_err(cannot)?;
        Ok(HomeLock { _file: file })
    }
}

/// What to do about a home that cannot be one.
pub(crate) const ELSEWHERE: &str = "set TALARIA_HOME to a folder of your own";

/// What to do about a link to something that we write to.
pub(crate) const IN_ITS_PLACE: &str =
    "put what it leads to in its place; to keep everything elsewhere, set TALARIA_HOME";

pub(crate) fn is_a_link(path: &Path) -> String {
    format!("{} is a link", path.display())
}

/// The mode of something for nobody but this user.
pub(crate) fn private_mode(path: &Path) -> Mode {
    fs::symlink_metadata(path).map_or(Mode::PRIVATE, |found| Mode::of(&found).for_us())
}

fn is_shared(path: &Path, how: &str) -> Halt {
    Halt::new(
        Exit::Misused,
        format_args!(
            "{} ({how}) is not for Talaria alone: it holds other things, and others can get into it",
            path.display()
        ),
    )
    .hint(format_args!(
        "set TALARIA_HOME to a folder for nothing else; to close this one, run `{}`",
        close_command(path, private_mode(path))
    ))
}

fn is_open(path: &Path, how: &str) -> Halt {
    Halt::new(
        Exit::Misused,
        format_args!(
            "others can read {} ({how}), and what people said is in there",
            path.display()
        ),
    )
    .hint(format_args!(
        "run `{}`, or `talaria doctor --fix` for everything in the home",
        close_command(path, private_mode(path))
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    #[test]
    fn everything_that_has_a_place_of_its_own_is_ours() {
        let home = Home::at(Path::new("/home"));
        let ours: Vec<_> = home.ours().collect();
        for place in [home.backups(), home.restoring(), home.voice(), home.account("x")] {
            assert!(ours.iter().any(|known| place.starts_with(known)), "{}", place.display());
        }
    }

    #[test]
    fn the_home_of_another_user_is_refused_for_good() {
        let folder = tempfile::tempdir().unwrap();
        // Only root can give something away, and everything above is another user's to everybody else.
        let given = std::os::unix::fs::chown(folder.path(), Some(65534), None);
        let foreign = if given.is_ok() { folder.path() } else { Path::new("/") };
        let halt = Home::at(foreign).prepare().unwrap_err();
        assert!(halt.explained().contains("belongs to another user"), "{halt}");
        assert_eq!(halt.of_a_gateway().exit, Exit::Unmendable);
    }

    #[test]
    fn a_home_that_is_no_folder_is_refused_for_good_and_a_link_to_nowhere_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "").unwrap();
        symlink(folder.path().join("elsewhere"), &link).unwrap();
        for path in [file.clone(), file.join("below/it")] {
            let halt = Home::at(&path).prepare().unwrap_err();
            let told = [path, file.clone()].map(|path| path.display().to_string());
            assert!(told.iter().all(|path| halt.explained().contains(path)), "{halt}");
            assert_eq!(halt.of_a_gateway().exit, Exit::Unmendable);
        }
        let halt = Home::at(&link).prepare().unwrap_err();
        assert_eq!(halt.of_a_gateway().exit, Exit::Failed);
        assert_eq!(Home::at(&folder.path().join("not/there")).obstacle(), None);
    }

    #[test]
    fn a_lock_that_is_a_link_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        let words = folder.path().join("words");
        fs::write(&words, "somebody's").unwrap();
        symlink(&words, folder.path().join("gateway.lock")).unwrap();
        assert!(home.lock().is_err());
        assert_eq!(fs::read_to_string(words).unwrap(), "somebody's");
    }

    #[test]
    fn state_that_is_a_link_or_open_to_others_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home { path: folder.path().join("home") };
        let mode = || home.path.metadata().unwrap().mode() & 0o777;
        let set =
            |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        home.prepare().unwrap();
        assert_eq!(mode(), 0o700);
        set(&home.path, 0o755);
        home.prepare().unwrap();
        assert_eq!(mode(), 0o700, "a folder with nothing in it is closed");
        fs::write(home.path.join("config.yaml"), "").unwrap();
        set(&home.path.join("config.yaml"), 0o600);
        set(&home.path, 0o755);
        home.prepare().unwrap();
        assert_eq!(mode(), 0o700, "one that was set up for us, too");
        fs::write(home.path.join("index.html"), "").unwrap();
        set(&home.path, 0o755);
        let told = home.prepare().unwrap_err().explained();
        assert!(told.contains("is not for Talaria alone") && told.contains("chmod 700"), "{told}");
        assert_eq!(mode(), 0o755, "one that others use is left as it is");
        fs::remove_file(home.path.join("index.html")).unwrap();
        set(&home.path, 0o700);
        for (name, open, closed) in
            [("state.db", 0o640, 600), ("homes.json", 0o660, 600), ("files", 0o750, 700)]
        {
            let path = home.path.join(name);
            match name {
                "files" => fs::create_dir(&path).unwrap(),
                _ => fs::write(&path, "").unwrap(),
            }
            set(&path, open);
            let told = home.prepare().unwrap_err().explained();
            assert!(told.contains(&format!("{name} (mode {open:o})")), "{told}");
            assert!(told.contains(&format!("chmod {closed} {}", path.display())), "{told}");
            assert_eq!(path.metadata().unwrap().mode() & 0o777, open, "it is left as it was found");
            set(&path, 0o700);
            home.prepare().unwrap();
        }
        set(&home.path, 0o750);
        let halt = home.prepare().unwrap_err().to_string();
        assert!(halt.contains("home (mode 750)"), "{halt}");
        set(&home.path, 0o700);
        for name in OURS {
            let path = home.path.join(name);
            let _ = fs::remove_file(&path);
            let _ = fs::remove_dir(&path);
            symlink(folder.path().join("elsewhere"), &path).unwrap();
            let halt = home.prepare().unwrap_err();
            assert!(halt.explained().contains(&format!("{name} is a link")), "{halt}");
            assert_eq!(halt.of_a_gateway().exit, Exit::Unmendable, "{name}");
            fs::remove_file(&path).unwrap();
        }
        home.prepare().unwrap();
        let accounts = home.path.join("accounts");
        fs::create_dir(&accounts).unwrap();
        set(&accounts, 0o700);
        symlink(folder.path(), accounts.join("web")).unwrap();
        let halt = home.prepare().unwrap_err().to_string();
        assert!(halt.contains("web is a link"), "what an account has, too: {halt}");
    }
}
