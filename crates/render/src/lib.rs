//! Markdown to a document tree, the tree to each dialect, and splitting by the platform's own unit.
//!
//! What a model writes is not trusted: [`parse`] bounds it and takes every control character out, and
//! each dialect writes only what its reader shows as text. One file per dialect, all reading the same
//! tree. This crate knows how text looks, never who reads it, where it goes or which platform that is.
#![forbid(unsafe_code)]

mod aloud;
mod ansi;
mod autolink;
mod chat;
mod columns;
mod commonmark;
mod dialect;
mod discord;
mod divide;
mod document;
mod finish;
mod html;
mod length;
mod markdown;
mod mend;
mod page;
mod parse;
mod plain;
mod runs;
mod slack;
mod spoiler;
mod table;
mod telegram;
mod thoughts;
mod verbatim;
mod visible;
mod wrap;

pub use aloud::aloud;
pub use ansi::{Colour, Style, ansi};
pub use dialect::{Dialect, Rendered, render};
pub use divide::{PartsIn, parts_in, split_in};
pub use document::{Align, Block, Cell, Document, Inline, Item, Marker, Spacing, Task};
pub use html::html;
pub use length::length;
pub use markdown::{append, literal};
pub use parse::parse;
pub use plain::plain;
pub use telegram::{Entity, EntityKind};
pub use thoughts::{Thoughts, Told};
pub use verbatim::{markdown, read};
pub use visible::visible;
