//! Every built-in platform, a folder each, and the one list of them.
