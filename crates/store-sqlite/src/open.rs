//! Opening the files: permissions, settings, the version, and whether the content is sound.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension};

/// The oldest SQLite that does not lose committed pages when two connections checkpoint at once.
const OLDEST_SQLITE: i32 = 3_051_003;

/// "TALA", so that another program's database is not taken for ours.
const APPLICATION: i32 = 0x5441_4C41;

/// Each step leads from its place in the list to the next version, in one transaction.
pub(crate) const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/1.sql"),
    include_str!("../migrations/2.sql"),
    include_str!("../migrations/3.sql"),
    include_str!("../migrations/4.sql"),
    include_str!("../migrations/5.sql"),
    include_str!("../migrations/6.sql"),
    include_str!("../migrations/7.sql"),
    include_str!("../migrations/8.sql"),
    include_str!("../migrations/9.sql"),
    include_str!("../migrations/10.sql"),
];

/// A larger file is not checked while somebody waits for the gateway to start. What is damaged in it
/// is reported when it is read, or by `SqliteStore::check`.
const CHECKED_AT_ONCE: u64 = 64 << 20;

/// How long a connection waits for a lock that another one holds.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why the store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The folder or a file in it cannot be used.
    #[error("{path} cannot be used: {source}")]
    Folder {
        /// What was tried.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
    /// It was written by a later version of the program.
    #[error("{path} has version {found}, and this program knows versions up to {known}")]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i32,
        /// The newest one we know.
        known: i32,
    },
    /// The file is something else.
    #[error("{path} is not a database of this program")]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The file is damaged.
    #[error("{path} is damaged: {reason}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        reason: String,
    },
    /// Another process holds the file.
    #[error("{path} is in use by another process")]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The disk does not take what has to be written.
    #[error("{path} cannot be written: {reason}")]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// What stands in the way.
        reason: String,
    },
    /// The program was built with an SQLite that can lose data.
    #[error("SQLite {found} is too old")]
    OldSqlite {
        /// Its version.
        found: &'static str,
    },
}

impl OpenError {
    /// What a person can do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Folder { path, source } => {
                let folder = path.parent().unwrap_or(path).display();
                match source.kind() {
                    io::ErrorKind::NotFound => format!("create the folder {folder}"),
                    io::ErrorKind::PermissionDenied => format!(
                        "let the user that runs the gateway read and write {folder} and what is in \
                         it: chown -R it to that user, then chmod -R u+rwX"
                    ),
                    io::ErrorKind::ReadOnlyFilesystem => {
                        "the file system is mounted read-only; remount it or choose another home"
                            .into()
                    }
                    _ => format!("look at {folder} and what is in it"),
                }
            }
            Self::Newer { .. } => {
                "run the newer version of the gateway that wrote it, or restore a backup made \
                 before the upgrade; nothing was changed"
                    .into()
            }
            Self::Foreign { path } => {
                format!("move {} away or choose another home; nothing was changed", path.display())
            }
            Self::Damaged { path, .. } => format!(
                "keep a copy of {0} and {0}-wal, then restore a backup or recover what can be \
                 recovered with `sqlite3 {0} .recover`",
                path.display()
            ),
            Self::InUse { .. } => {
                "stop the other gateway, or the tool that has the file open".into()
            }
            Self::Unwritable { .. } => {
                "see whether the disk is full, read-only or failing, mend that, then start again"
                    .into()
            }
            Self::OldSqlite { .. } => "build the gateway with its bundled SQLite".into(),
        }
    }

    pub(crate) fn sqlite(path: &Path, error: &rusqlite::Error) -> Self {
        let path = path.to_owned();
        let reason = error.to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) if header_names_us(&path) => {
                Self::Damaged { path, reason }
            }
            Some(ErrorCode::NotADatabase) => Self::Foreign { path },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::InUse { path },
            Some(ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
                Self::Folder { path, source: io::Error::other(reason) }
            }
            Some(ErrorCode::DiskFull | ErrorCode::SystemIoFailure | ErrorCode::ReadOnly) => {
                Self::Unwritable { path, reason }
            }
            _ => Self::Damaged { path, reason },
        }
    }
}

/// What a connection is for, which decides how much memory it may keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Write,
    Read,
}

/// Opens the truth for writing and brings it to the version we know.
pub(crate) fn open_state(path: &Path) -> Result<Connection, OpenError> {
    open_migrated(path, MIGRATIONS)
}

/// Opens the truth for writing and brings it to the version that these steps lead to.
pub(crate) fn open_migrated(path: &Path, migrations: &[&str]) -> Result<Connection, OpenError> {
    if rusqlite::version_number() < OLDEST_SQLITE {
        return Err(OpenError::OldSqlite { found: rusqlite::version() });
    }
    create_private(path)?;
    let explain = |error: rusqlite::Error| OpenError::sqlite(path, &error);
    let mut conn = connect(path, Purpose::Write).map_err(explain)?;
    let found = usable_version(&conn, path, migrations)?;
    make_shrinkable(&conn).map_err(explain)?;
    write_ahead(&conn).map_err(explain)?;
    migrate(&mut conn, found, migrations).map_err(explain)?;
    conn.pragma_update(None, "foreign_keys", "on").map_err(explain)?;
    check_keys(&conn, path)?;
    check_if_small(&conn, path)?;
    Ok(conn)
}

/// Finds what would keep a start from opening the truth of a folder, and changes nothing in it. Somebody may be
/// writing to it; where there is none, nothing stands in the way.
pub fn rehearse(folder: &Path) -> Result<(), OpenError> {
    let path = folder.join("state.db");
    if !path.exists() {
        return Ok(());
    }
    let conn = connect(&path, Purpose::Read).map_err(|error| OpenError::sqlite(&path, &error))?;
    match usable_version(&conn, &path, MIGRATIONS)? {
        0 => Ok(()),
        _ => {
            check_keys(&conn, &path)?;
            check_if_small(&conn, &path)
        }
    }
}

/// The version of a file that this program can go on with; 0 where nothing is in it yet.
fn usable_version(conn: &Connection, path: &Path, migrations: &[&str]) -> Result<i32, OpenError> {
    let explain = |error: rusqlite::Error| OpenError::sqlite(path, &error);
    let (application, found) = version(conn).map_err(explain)?;
    let known = i32::try_from(migrations.len()).expect("there are few migrations");
    let used = !is_empty(conn).map_err(explain)?;
    if used && application != APPLICATION && !has_our_tables(conn) {
        return Err(OpenError::Foreign { path: path.to_owned() });
    }
    if used && (application != APPLICATION || found < 1) {
        let reason = format!("its header says application {application}, version {found}");
        return Err(OpenError::Damaged { path: path.to_owned(), reason });
    }
    if found > known {
        return Err(OpenError::Newer { path: path.to_owned(), found, known });
    }
    Ok(found)
}

/// A connection to an existing file.
pub(crate) fn connect(path: &Path, purpose: Purpose) -> rusqlite::Result<Connection> {
    let (access, cache) = match purpose {
        Purpose::Write => (OpenFlags::SQLITE_OPEN_READ_WRITE, 2048),
        Purpose::Read => (OpenFlags::SQLITE_OPEN_READ_ONLY, 512),
    };
    // Each connection stays on one thread, so it needs no mutex of its own.
    let conn = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    conn.busy_timeout(PATIENCE)?;
    conn.set_prepared_statement_cache_capacity(64);
    // Without this, a statement whose parameters decide between partial indexes is planned anew each
    // time it runs.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    // A mapped file turns a bad disk into a crash of the process instead of an error.
    conn.pragma_update(None, "mmap_size", 0)?;
    conn.pragma_update(None, "cell_size_check", "on")?;
    conn.pragma_update(None, "cache_size", -cache)?;
    conn.pragma_update(None, "temp_store", "memory")?;
    conn.pragma_update(None, "trusted_schema", "off")?;
    // What is taken out of a row is overwritten in its page, not only unlinked: words that are not kept
    // would still be in the file. `fast` does so in pages that are written anyway and costs no more
    // writing. The log has earlier forms of a page until it begins anew; the last connection to close
    // removes it.
    conn.pragma_update_and_check(None, "secure_delete", "fast", |_| Ok(()))?;
    Ok(conn)
}

/// Lets the file give room back a little at a time. A file that was made before is written anew for
/// it, once.
fn make_shrinkable(conn: &Connection) -> rusqlite::Result<()> {
    const INCREMENTAL: i64 = 2;
    let mode: i64 = conn.pragma_query_value(None, "auto_vacuum", |row| row.get(0))?;
    if mode != INCREMENTAL {
        conn.pragma_update(None, "auto_vacuum", INCREMENTAL)?;
        if !is_empty(conn)? {
            conn.execute_batch("VACUUM")?;
        }
    }
    Ok(())
}

/// What makes a commit survive a power cut.
fn write_ahead(conn: &Connection) -> rusqlite::Result<()> {
    conn.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get::<_, String>(0))?;
    conn.pragma_update(None, "synchronous", "full")?;
    // A log that grew while somebody read for long does not stay that large.
    conn.pragma_update(None, "journal_size_limit", 8 << 20)
}

/// The file exists after this, and only its owner may read it.
pub(crate) fn create_private(path: &Path) -> Result<(), OpenError> {
    let explain = |source| OpenError::Folder { path: path.to_owned(), source };
    let mut options = fs::OpenOptions::new();
    options.read(true).append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path).map_err(explain)?;
    #[cfg(unix)]
    {
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        file.set_permissions(private).map_err(explain)?;
    }
    drop(file);
    Ok(())
}

pub(crate) fn version(conn: &Connection) -> rusqlite::Result<(i32, i32)> {
    let application = conn.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let version = conn.pragma_query_value(None, "user_version", |row| row.get(0))?;
    Ok((application, version))
}

/// Whether a header names our application.
pub(crate) fn is_ours(application: i32) -> bool {
    application == APPLICATION
}

fn is_empty(conn: &Connection) -> rusqlite::Result<bool> {
    conn.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| row.get(0))
}

/// Whether the content is ours, whatever the header says.
fn has_our_tables(conn: &Connection) -> bool {
    let sql = "SELECT count(*) = 2 FROM meta WHERE key IN ('epoch', 'alive')";
    conn.query_row(sql, [], |row| row.get(0)).unwrap_or(false)
}

/// Whether the header names our application, whatever else is wrong with it.
fn header_names_us(path: &Path) -> bool {
    let mut header = [0; 72];
    let read = fs::File::open(path).and_then(|mut file| file.read_exact(&mut header));
    read.is_ok() && header[68..] == APPLICATION.to_be_bytes()
}

/// A table that others refer to can only be made anew while nobody checks the references.
fn migrate(conn: &mut Connection, found: i32, steps: &[&str]) -> rusqlite::Result<()> {
    conn.pragma_update(None, "foreign_keys", "off")?;
    for (version, step) in (1..).zip(steps).filter(|(version, _)| *version > found) {
        let migration = conn.transaction()?;
        migration.execute_batch(step)?;
        migration.pragma_update(None, "application_id", APPLICATION)?;
        migration.pragma_update(None, "user_version", version)?;
        migration.commit()?;
    }
    Ok(())
}

/// What says whose everything else is. These tables grow with the number of conversations and not of
/// messages, so they are compared with their indexes whatever the size of the file: an index that leads
/// to another row would hand one conversation to another.
const KEYS: &str = "SELECT name FROM sqlite_schema WHERE type = 'table'
     AND name IN ('account', 'address', 'person', 'conversation', 'life', 'borrowed')";

fn check_keys(conn: &Connection, path: &Path) -> Result<(), OpenError> {
    let explain = |error: rusqlite::Error| OpenError::sqlite(path, &error);
    let mut keys = conn.prepare(KEYS).map_err(explain)?;
    let mut tables = keys.query([]).map_err(explain)?;
    while let Some(table) = tables.next().map_err(explain)? {
        let table: String = table.get(0).map_err(explain)?;
        let found: String = conn
            .query_row(&format!("PRAGMA integrity_check({table})"), [], |row| row.get(0))
            .map_err(explain)?;
        if found != "ok" {
            return Err(OpenError::Damaged { path: path.to_owned(), reason: found });
        }
    }
    Ok(())
}

/// After a clean end there is no reason for doubt, and a large file would take too long.
fn check_if_small(conn: &Connection, path: &Path) -> Result<(), OpenError> {
    let explain = |error: rusqlite::Error| OpenError::sqlite(path, &error);
    let abrupt: bool = conn
        .query_row("SELECT value = 'yes' FROM meta WHERE key = 'alive'", [], |row| row.get(0))
        .map_err(explain)?;
    let size = fs::metadata(path).map_or(0, |file| file.len());
    if !abrupt || size > CHECKED_AT_ONCE {
        return Ok(());
    }
    match quick_check(conn).map_err(explain)? {
        None => Ok(()),
        Some(reason) => Err(OpenError::Damaged { path: path.to_owned(), reason }),
    }
}

/// The first thing that is wrong with a database, each row and each index compared.
pub(crate) fn full_check(conn: &Connection) -> rusqlite::Result<Option<String>> {
    let found: String = conn.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    if found != "ok" {
        return Ok(Some(found));
    }
    let sql = "SELECT \"table\" FROM pragma_foreign_key_check LIMIT 1";
    let stray: Option<String> = conn.query_row(sql, [], |row| row.get(0)).optional()?;
    Ok(stray.map(|table| format!("a row of {table} leads nowhere")))
}

/// The first thing that is wrong with a database, without comparing rows with indexes.
pub(crate) fn quick_check(conn: &Connection) -> rusqlite::Result<Option<String>> {
    let found: String = conn.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    Ok((found != "ok").then_some(found))
}
