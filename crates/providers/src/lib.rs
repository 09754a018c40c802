//! LLM APIs, a folder each.
