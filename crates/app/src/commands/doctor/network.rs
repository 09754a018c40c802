//! The way to servers: whether somebody believes in a proxy that is not used.

use talaria_config::Origin;
use talaria_model::Proxy;

use super::{Finding, Patient};

pub(super) fn look(patient: &Patient<'_>) -> Option<Finding> {
    let loaded = patient.loaded?;
    // Whoever has written something there has decided.
    let is_decided = !matches!(loaded.origin("network.proxy"), None | Some(Origin::Default));
    let is_set = |name: &String| loaded.environment().get(name).is_some();
    let spelled = |name: &&str| [name.to_string(), name.to_lowercase()];
    let named: Vec<String> = Proxy::VARIABLES.iter().flat_map(spelled).filter(is_set).collect();
    if is_decided || named.is_empty() {
        return None;
    }
    let is_are = if named.len() == 1 { "is" } else { "are" };
    let text = format!(
        "{} {is_are} set and not used: no proxy is, unless the configuration says so",
        named.join(", ")
    );
    Some(Finding::warning("network", text).hint(
        "`network.proxy: environment` in config.yaml has them count, the address of a proxy names one, \
         and `network.proxy: none` says that it is meant so",
    ))
}
