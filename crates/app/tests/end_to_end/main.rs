//! The real binary, from outside: a vendor, a model, a home, and whatever can go wrong.

mod ending;
mod faults;
mod kill;
mod questions;
mod rig;
