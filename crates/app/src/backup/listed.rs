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

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(lists: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let config = format!("accounts: {{discord: {{token: 'a.b.c', {lists}}}}}\n");
        fs::write(folder.path().join("config.yaml"), config).unwrap();
        folder
    }

    #[test]
    fn people_and_roles_that_come_back_by_a_list_are_named() {
        let few = folder("allow: ['198622483471925248']");
        let many = folder(
            "allow: ['198622483471925248', '198622483471925249'], allowed_roles: ['901'], dm_role_auth_guild: '41'",
        );
        let all = folder("allow_everyone: true, allowed_roles: ['902']");
        let come_back = |home: &tempfile::TempDir, incoming: &tempfile::TempDir| {
            newly_listed(home.path(), incoming.path())
        };
        let expected = [
            "discord:198622483471925249",
            "discord:everybody with role 41/901",
            "discord:everybody with role 901",
        ];
        assert_eq!(come_back(&few, &many), expected);
        assert_eq!(come_back(&many, &few), [""; 0], "nobody comes back by a list that is shorter");
        let expected = ["discord:everybody", "discord:everybody with role 902"];
        assert_eq!(come_back(&many, &all), expected, "another role is other people");
    }
}
