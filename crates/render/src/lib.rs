//! Markdown to a document tree, the tree to each dialect, and splitting by the platform's own unit.
//!
//! What a model writes is not trusted: [`parse`] bounds it and takes every control character out, and
//! each dialect writes only what its reader shows as text. One file per dialect, all reading the same
//! tree. This crate knows how text looks, never who reads it, where it goes or which platform that is.
#![forbid(unsafe_code)]

mod ansi;
mod autolink;
mod columns;
mod document;
mod html;
mod layout;
mod length;
mod markdown;
mod parse;
mod plain;
mod split;
mod visible;
mod wrap;

pub use ansi::{Colour, Style, ansi};
pub use document::{Align, Block, Cell, Document, Inline, Item, Marker, Spacing, Task};
pub use html::html;
pub use length::length;
pub use markdown::{append, literal};
pub use parse::parse;
pub use plain::plain;
pub use split::{Parts, parts, split};
pub use visible::visible;
