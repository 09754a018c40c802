//! Markdown to a document tree, to each dialect, and the splitter.
