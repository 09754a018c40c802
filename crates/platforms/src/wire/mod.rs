//! What platforms share that speak HTTP or WebSocket to their vendor: connections with deadlines and
//! bounds, and errors that say whether a request can have arrived. And what each of them would write once
//! more: `recent` remembers a bounded number of things, `registered` knows what was registered with a
//! vendor, `handover` answers a request when what it brought is safe, `vestibule` holds what a request says until
//! it is known whose it is.

pub(crate) mod files;
pub(crate) mod handover;
pub(crate) mod headers;
pub(crate) mod http;
pub(crate) mod recent;
pub(crate) mod registered;
pub(crate) mod socket;
pub(crate) mod vestibule;
