//! Fetches from addresses that somebody else chose: a vendor that names where a file lies, a person who
//! pastes a link, a model that wants to read a page.
//!
//! Such an address may lead into the operator's own network. So a name is resolved once, every address it
//! has is judged, and the connection goes to what was judged; each redirect is judged like the first
//! address. Whatever answers gets a bounded time, has to keep up a pace, and is read up to a bound.
//!
//! An address that the operator configured is trusted; of those it only knows by which way they are
//! reached ([`route`]).
//!
//! It knows neither platforms nor what is fetched.
#![forbid(unsafe_code)]

mod address;
mod error;
mod fetcher;
mod paced;
mod resolve;
mod route;
mod rules;

pub use address::{Reach, reach};
pub use error::FetchError;
pub use fetcher::{Ask, Fetched, Fetcher};
pub use paced::paced;
pub use resolve::{Resolve, SystemResolver};
pub use route::{is_this_machine, route};
pub use rules::{Hosts, Origin, PrivateHost, Rules, Unusable};
