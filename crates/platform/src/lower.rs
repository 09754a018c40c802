//! Makes an act fit what a platform can do.

use talaria_model::{Capabilities, Outbound};

/// Turns one act into the acts that a platform with these capabilities can carry out, in order.
pub fn lower(outbound: Outbound, can: &Capabilities) -> Vec<Outbound> {
    let _ = can;
    vec![outbound]
}
