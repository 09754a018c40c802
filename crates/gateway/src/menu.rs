//! The commands of an account, for platforms that offer them.

use std::sync::Arc;

use talaria_platform::{MenuItem, Offered};
use talaria_session::{COMMANDS, CommandSpec, QuickCommand, Rules, Surface, Who};

/// What can be given under these rules on such an account: the built-in commands by name, then those of
/// the configuration.
pub fn menu(rules: &Rules, surface: Surface) -> Arc<[MenuItem]> {
    let offered = |who: Who| match (who, surface) {
        (Who::Anyone, _) | (Who::Admin, Surface::Own) => Offered::Everyone,
        (Who::Admin, Surface::Platform) => Offered::Administrators,
    };
    let built_in = |spec: &CommandSpec| MenuItem {
        name: spec.name.into(),
        aliases: spec.aliases.iter().map(|&alias| alias.into()).collect(),
        arguments: spec.arguments.into(),
        help: spec.help.into(),
        to: offered(spec.who),
    };
    let own = |quick: &QuickCommand| MenuItem {
        name: quick.name.clone(),
        aliases: Vec::new(),
        arguments: String::new(),
        help: quick.help.clone(),
        to: offered(quick.who),
    };
    let listed = COMMANDS.iter().filter(|spec| spec.is_listed()).map(built_in);
    listed.chain(rules.quick.iter().filter(|quick| quick.is_reached()).map(own)).collect()
}

#[cfg(test)]
mod tests {
    use talaria_session::Quick;

    use super::*;

    #[test]
    fn a_menu_has_what_typing_leads_to_and_says_who_it_is_for() {
        let quick = |name: &str| QuickCommand {
            name: name.into(),
            help: "one's own".into(),
            who: Who::Anyone,
            does: Quick::Run,
        };
        let rules = Rules { quick: vec![quick("disk"), quick("new")], ..Rules::default() };
        let to = |surface: Surface, name: &str| -> Vec<Offered> {
            menu(&rules, surface)
                .iter()
                .filter(|item| item.name == name)
                .map(|item| item.to)
                .collect()
        };
        assert_eq!(to(Surface::Platform, "disk"), [Offered::Everyone]);
        assert_eq!(
            to(Surface::Platform, "new"),
            [Offered::Everyone],
            "once, although the configuration has one"
        );
        assert_eq!(to(Surface::Platform, "restart"), [Offered::Administrators]);
        assert_eq!(
            to(Surface::Platform, "start"),
            [],
            "what platforms say by themselves is not offered"
        );
        assert_eq!(to(Surface::Own, "restart"), [Offered::Everyone]);
    }
}
