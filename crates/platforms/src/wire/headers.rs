//! What a request says of itself.

use axum::http::HeaderMap;

/// The value of a header that appears exactly once. Two would let two readers disagree.
pub(crate) fn only<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}
