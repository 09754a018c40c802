//! Running a statement. Every statement is prepared once per connection and kept.

use rusqlite::{Connection, ErrorCode, OptionalExtension, Params, Row};
use talaria_store::StoreError;

/// Whether an error is about the moment and not about what is stored.
pub(crate) fn is_passing(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(
            ErrorCode::DiskFull
                | ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::SystemIoFailure
                | ErrorCode::ReadOnly
                | ErrorCode::OutOfMemory
                | ErrorCode::CannotOpen
                | ErrorCode::OperationInterrupted
                | ErrorCode::OperationAborted
        )
    )
}

/// What the caller of a store has to know about an error of SQLite.
pub(crate) fn store_error(error: rusqlite::Error) -> StoreError {
    let reason = error.to_string();
    if is_passing(&error) {
        StoreError::Unavailable { reason }
    } else {
        StoreError::Damaged { reason }
    }
}

/// Changes rows; says how many.
pub(crate) fn execute(
    conn: &Connection,
    sql: &str,
    params: impl Params,
) -> Result<usize, StoreError> {
    conn.prepare_cached(sql).and_then(|mut sql| sql.execute(params)).map_err(store_error)
}

/// The row that is surely there.
pub(crate) fn one<T>(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<T, StoreError> {
    conn.prepare_cached(sql).and_then(|mut sql| sql.query_row(params, read)).map_err(store_error)
}

/// The row, if it is there.
pub(crate) fn maybe<T>(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Option<T>, StoreError> {
    conn.prepare_cached(sql)
        .and_then(|mut sql| sql.query_row(params, read).optional())
        .map_err(store_error)
}

/// All rows.
pub(crate) fn all<T>(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>, StoreError> {
    let mut statement = conn.prepare_cached(sql).map_err(store_error)?;
    let rows = statement.query_map(params, read).map_err(store_error)?;
    rows.collect::<rusqlite::Result<_>>().map_err(store_error)
}
