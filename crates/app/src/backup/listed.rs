//! Whom the settings of a backup let in who are not let in by those that they replace.
//!
//! Lists are the operator's own text: they come back as they were. But nobody is to come in again by one of
//! them without the operator having read the name.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use talaria_config::{AccountAccess, Sources};

/// Who, as `account:sender`; `account:everybody` where all are heard. Settings that cannot be read let nobody
/// in.
pub(super) fn newly_listed(home: &Path, incoming: &Path) -> Vec<String> {
    let present = listed(home, home);
    listed(home, incoming).difference(&present).cloned().collect()
}

/// Whom the settings in a folder let in. What is not in it is as it is in the home.
fn listed(home: &Path, folder: &Path) -> BTreeSet<String> {
    let mut sources = Sources::read(home, std::env::vars_os()).unwrap_or_default();
    if let Ok(config) = fs::read_to_string(folder.join("config.yaml")) {
        sources = sources.with_config(config);
    }
    if let Ok(dotenv) = fs::read_to_string(folder.join(".env")) {
        sources = sources.with_dotenv(dotenv);
    }
    let Ok(loaded) = talaria_config::load(sources, talaria_platforms::ALL) else {
        return BTreeSet::new();
    };
    let accounts = loaded.config().accounts.iter();
    accounts
        .flat_map(|(account, settings)| {
            named(&settings.access).into_iter().map(move |who| format!("{account}:{who}"))
        })
        .collect()
}

fn named(access: &AccountAccess) -> Vec<String> {
    let lists = [&access.allow, &access.general, &access.direct.allow, &access.group.allow];
    let everybody = access.is_open().then(|| "everybody".to_owned());
    let roles = [&access.direct.roles, &access.group.roles].into_iter().flatten();
    let roles = roles.map(|role| format!("everybody with role {role}"));
    lists.into_iter().flatten().map(ToString::to_string).chain(roles).chain(everybody).collect()
}
