//! The store contract, its suite, and the store in memory.
