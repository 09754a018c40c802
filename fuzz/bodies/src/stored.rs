//! What is stored as JSON, and what becomes of anything else.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;
use talaria_model::{Entry, Inbound, Outbound, TurnId};
use talaria_session::{Session, SessionKey};

pub(crate) fn run(data: &[u8]) {
    comes_back::<Inbound>(data);
    comes_back::<Session>(data);
    comes_back::<Entry>(data);
    comes_back::<Outbound>(data);
    comes_back::<SessionKey>(data);
    comes_back::<TurnId>(data);
}

fn comes_back<T: DeserializeOwned + Serialize + PartialEq + Debug>(data: &[u8]) {
    let Ok(value) = serde_json::from_slice::<T>(data) else { return };
    let stored = serde_json::to_vec(&value).expect("what was read can be stored");
    let read: T = serde_json::from_slice(&stored).expect("what was stored can be read");
    assert_eq!(read, value);
    let again = serde_json::to_vec(&read).expect("what was read can be stored");
    assert_eq!(again, stored, "it is stored differently the second time");
}
