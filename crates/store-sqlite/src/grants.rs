//! What people approved for good.

use rusqlite::{Connection, params};
use talaria_model::{Digest, Grant};
use talaria_store::{MOST_GRANTS, StoreError};

use crate::read::count;
use crate::rows::Json;
use crate::sql::{all, execute, maybe};

/// Keeps one in the place of an earlier one, whose giver may not be asked any more, and no more than there may be.
pub(crate) fn keep(conn: &Connection, digest: &Digest, grant: &str) -> Result<(), StoreError> {
    let sql = "INSERT OR REPLACE INTO approved (digest, approved) VALUES (?, ?)";
    execute(conn, sql, params![digest.to_string(), grant])?;
    let sql = "DELETE FROM approved WHERE id <= (SELECT id FROM approved ORDER BY id DESC
                 LIMIT 1 OFFSET ?)";
    execute(conn, sql, [count(MOST_GRANTS)]).map(drop)
}

pub(crate) fn find(conn: &Connection, digest: &Digest) -> Result<Option<Grant>, StoreError> {
    let sql = "SELECT approved FROM approved WHERE digest = ?";
    let grant: Option<Json<Grant>> = maybe(conn, sql, [digest.to_string()], |row| row.get(0))?;
    // The index alone does not let anything happen: a flipped bit in it must not.
    Ok(grant.map(|Json(grant)| grant).filter(|grant| grant.digest == *digest))
}

pub(crate) fn newest(conn: &Connection, limit: usize) -> Result<Vec<Grant>, StoreError> {
    let sql = "SELECT approved FROM approved ORDER BY id DESC LIMIT ?";
    all(conn, sql, [count(limit)], |row| {
        let Json(grant) = row.get(0)?;
        Ok(grant)
    })
}

/// Says whether it was there.
pub(crate) fn revoke(conn: &Connection, digest: &Digest) -> Result<bool, StoreError> {
    let sql = "DELETE FROM approved WHERE digest = ?";
    Ok(execute(conn, sql, [digest.to_string()])? > 0)
}
