//! Who is heard, and who may do what that only administrators should.

use talaria_config::{AccountSettings, UnauthorizedDm, Ungated};
use talaria_model::AccountId;
use talaria_platform::Identity;

use super::{Finding, Patient};

pub(super) fn look(patient: &Patient<'_>) -> Vec<Finding> {
    let Some(loaded) = patient.loaded else { return Vec::new() };
    let accounts = loaded.config().accounts.iter();
    let others = accounts.filter(|(_, settings)| {
        settings.account.is_some() && settings.platform.identity == Identity::Anyone
    });
    others.flat_map(|(id, settings)| of_account(id, settings)).collect()
}

fn of_account(id: &AccountId, settings: &AccountSettings) -> Vec<Finding> {
    let mut findings = Vec::new();
    let access = &settings.access;
    let pairs = access.strangers == Some(UnauthorizedDm::Pair);
    if !access.names_somebody() && !access.is_open() && !pairs {
        findings.push(
            Finding::problem("access", format_args!("nobody is heard on {id}"))
                .hint(format_args!("name somebody in accounts.{id}.allow")),
        );
    }
    if access.is_open() {
        findings.push(
            Finding::warning(
                "access",
                format_args!("everybody is heard on {id}, and your model pays"),
            )
            .hint(format_args!("name who is to be heard in accounts.{id}.allow, and give budgets")),
        );
    }
    for ungated in Ungated::rooms(access, &settings.direct, &settings.group) {
        let (problem, hint) = (ungated.problem(id.as_str()), ungated.hint(id.as_str()));
        findings.push(Finding::warning("access", problem).hint(hint));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use talaria_config::Sources;

    fn found(keys: &str) -> Vec<String> {
        let yaml = format!("accounts: {{loopback: {{address: 127.0.0.1:1, {keys}}}}}");
        let sources = Sources::default().with_config(yaml);
        let loaded = talaria_config::load(sources, talaria_platforms::ALL).expect("it is right");
        let id = AccountId::literal("loopback");
        of_account(&id, &loaded.config().accounts[&id]).into_iter().map(|it| it.text).collect()
    }

    #[test]
    fn who_is_an_administrator_by_accident_is_found() {
        assert_eq!(found("allow: [ann], group_policy: disabled"), Vec::<String>::new());
        let several = found("allow: [ann, bob, cat]");
        assert_eq!(several.len(), 2, "{several:?}");
        assert!(several[0].contains("all 3 who are named are administrators"), "{several:?}");
        let gated = "allow: [ann, bob], allow_admin_from: [ann], group_allow_admin_from: [ann]";
        assert_eq!(found(gated), Vec::<String>::new());
        let everyone = found("allow: [ann], admins_unless_named: everyone, group_policy: disabled");
        assert_eq!(everyone.len(), 1, "{everyone:?}");
        assert!(
            everyone[0].contains("direct chats of loopback: all who are heard"),
            "{everyone:?}"
        );
        let by_role = |keys: &str| {
            let yaml =
                format!("accounts: {{discord: {{token: a.b.c, allowed_roles: ['9']{keys}}}}}");
            let sources = Sources::default().with_config(yaml);
            let loaded =
                talaria_config::load(sources, talaria_platforms::ALL).expect("it is right");
            let id = AccountId::literal("discord");
            of_account(&id, &loaded.config().accounts[&id])
        };
        // A role counts in direct chats only where a guild is asked about it.
        assert_eq!(by_role("").len(), 1);
        let all = by_role(", dm_role_auth_guild: '41'");
        assert_eq!(all.len(), 2);
        assert!(all[0].text.contains("all who have a role that it lets in are administrators"));
        let ann = "['198622483471925248']";
        let named = format!(", allow_admin_from: {ann}, group_allow_admin_from: {ann}");
        assert!(by_role(&named).is_empty());
        assert!(found("allow_everyone: true")[0].starts_with("everybody is heard"));
        assert!(found("dm_policy: disabled")[0].starts_with("nobody is heard"));
    }
}
