//! What no library that is kept does for us on Windows. This folder alone calls the operating system
//! itself, so it alone has unsafe code; everything around it is safe.

pub(crate) mod access;
pub(crate) mod console;
pub(crate) mod process;
pub(crate) mod room;
pub(crate) mod text;
