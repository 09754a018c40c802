//! The store on embedded SQLite.
