//! What the built-in agent needs from whoever runs it.

use async_trait::async_trait;
use talaria_model::FileRef;

use crate::{ToolScope, Wraps};

/// Finds what was said before.
#[async_trait]
pub trait Recall: Send + Sync {
    /// Entries that fit the query, best first, among those that the person in `scope` may read.
    async fn search(
        &self,
        scope: &ToolScope,
        query: &str,
        limit: usize,
    ) -> Result<Vec<Memory>, String>;
}

/// Something that was said before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memory {
    /// When, as people read it.
    pub when: String,
    /// In which conversation.
    pub conversation: String,
    /// Who said it.
    pub who: String,
    /// The text around the match.
    pub excerpt: String,
}

/// Reads and keeps files that travel with messages.
#[async_trait]
pub trait Attachments: Send + Sync {
    /// The bytes of a file, if there are at most `limit`.
    async fn load(&self, file: &FileRef, limit: u64) -> Option<Vec<u8>>;

    /// Keeps a file so that it can be sent.
    async fn save(&self, name: &str, mime: &str, bytes: Vec<u8>) -> Result<FileRef, String>;
}

/// Runs programs that the operator has named.
#[async_trait]
pub trait Programs: Send + Sync {
    /// All of them, for the model.
    fn known(&self) -> Vec<Program>;

    /// What running one of them with these further arguments would be, at this moment. Otherwise why it
    /// cannot be run, for the model.
    fn order(&self, name: &str, more: Vec<String>) -> Result<Order, String>;

    /// Runs it, and ends it with all that it started when this is dropped. Says what it printed, or what
    /// went wrong.
    async fn run(&self, order: Order) -> Result<String, String>;
}

/// A program, as the model knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// What it is good for.
    pub about: String,
}

/// Everything that decides what a run of a program does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// The name by which it was asked for.
    pub name: String,
    /// The file.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Changes whenever the file does.
    pub file: String,
    /// Whether a person is asked first.
    pub asks: AsksFirst,
    /// Whether it may run others.
    pub wraps: Wraps,
}

/// Whether a person is asked first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AsksFirst {
    /// Yes.
    Yes,
    /// No: the operator wants it so.
    No,
}
