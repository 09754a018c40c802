//! Copies of the truth: taken while somebody writes it, and looked at before anybody trusts one.

use std::io;
use std::path::Path;

use rusqlite::Connection;

use crate::open::{
    MIGRATIONS, OpenError, Purpose, connect, create_private, full_check, is_ours, version,
};

/// The version of the schema that this program writes.
pub fn schema() -> i32 {
    i32::try_from(MIGRATIONS.len()).expect("there are few migrations")
}

/// Writes `state.db` of a folder into a file that is not there yet, as one moment left it, and says
/// which version it has. Whoever writes to it goes on meanwhile, in this process or another.
pub fn copy(folder: &Path, to: &Path) -> Result<i32, OpenError> {
    let state = folder.join("state.db");
    if !state.exists() {
        return Err(OpenError::Folder { path: state, source: io::ErrorKind::NotFound.into() });
    }
    let (conn, found) = look(&state, Purpose::Read)?;
    create_private(to)?;
    let target = to.to_str().ok_or_else(|| OpenError::Folder {
        path: to.to_owned(),
        source: io::Error::other("its name is not UTF-8"),
    })?;
    // One read transaction: what is committed while it lasts stays out of it.
    conn.execute("VACUUM INTO ?", [target]).map_err(|error| OpenError::sqlite(to, &error))?;
    Ok(found)
}

/// Looks through the whole of a copy for damage and says which version it has. One that a later program
/// wrote is refused.
pub fn inspect(file: &Path) -> Result<i32, OpenError> {
    let (conn, found) = look(file, Purpose::Read)?;
    let damaged = |reason| OpenError::Damaged { path: file.to_owned(), reason };
    match full_check(&conn).map_err(|error| OpenError::sqlite(file, &error))? {
        None => Ok(found),
        Some(reason) => Err(damaged(reason)),
    }
}

/// Opens a file that is ours and that we can read, and says which version it has.
pub(crate) fn look(file: &Path, purpose: Purpose) -> Result<(Connection, i32), OpenError> {
    let explain = |error: rusqlite::Error| OpenError::sqlite(file, &error);
    let conn = connect(file, purpose).map_err(explain)?;
    let (application, found) = version(&conn).map_err(explain)?;
    if !is_ours(application) || found < 1 {
        return Err(OpenError::Foreign { path: file.to_owned() });
    }
    let known = schema();
    if found > known {
        return Err(OpenError::Newer { path: file.to_owned(), found, known });
    }
    Ok((conn, found))
}
