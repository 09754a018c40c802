//! What platforms share that speak HTTP or WebSocket to their vendor: connections with deadlines and
//! bounds, and errors that say whether a request can have arrived.

pub(crate) mod http;
pub(crate) mod socket;
