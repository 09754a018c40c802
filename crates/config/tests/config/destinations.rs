//! The chats that messages may be sent to by a name.

use talaria_config::AskBefore;
use talaria_model::ChatKind;

use crate::{loaded, problems};

const ACCOUNTS: &str = "accounts: {pigeon: {token: ring, allow: [ann]}}\n";

fn with(yaml: &str) -> String {
    format!("{yaml}\n{ACCOUNTS}")
}

#[test]
fn a_destination_is_a_chat_on_an_account_and_is_asked_about_unless_it_says_otherwise() {
    let yaml = with(
        "destinations:\n  family: {account: pigeon, chat: -100123, about: the family}\n  \
         ops: {account: pigeon, chat: roof, kind: dm, thread: '7', ask: never}",
    );
    let loaded = loaded(&yaml, &[]);
    let known = &loaded.config().destinations;
    let family = known["family"].address().expect("it can be read");
    assert_eq!((family.account.as_str(), family.chat.id.as_str()), ("pigeon", "-100123"));
    assert_eq!((family.chat.kind, family.thread), (ChatKind::Group, None));
    assert_eq!(known["family"].ask, AskBefore::Always);
    let ops = known["ops"].address().expect("it can be read");
    assert_eq!(ops.chat.kind, ChatKind::Dm);
    assert_eq!(ops.thread.map(|thread| thread.to_string()).as_deref(), Some("7"));
    assert_eq!(known["ops"].ask, AskBefore::Never);
}

#[test]
fn what_cannot_be_meant_is_refused_with_its_line() {
    for (yaml, expected) in [
        (
            "destinations: {family: {account: pidgeon, chat: c}}",
            "config.yaml:1: destinations.family.account: \"pidgeon\" is no account of yours; did you mean \
             pigeon?",
        ),
        (
            "destinations: {pigeon: {account: pigeon, chat: c}}",
            "destinations.pigeon: is the name of an account, which stands for the account's home; choose \
             another one",
        ),
        ("destinations: {family: {account: pigeon}}", "config.yaml:1: destinations.family.chat:"),
        (
            "destinations: {family: {account: pigeon, chat: c, kind: party}}",
            "config.yaml:1: destinations.family.kind: \"party\"",
        ),
        (
            "destinations: {family: {account: pigeon, chat: c, ask: sometimes}}",
            "config.yaml:1: destinations.family.ask: \"sometimes\"",
        ),
        (
            "roles: {friend: {destinations: [famly]}}\n\
             destinations: {family: {account: pigeon, chat: c}}",
            "config.yaml:1: roles.friend.destinations[0]: \"famly\" is neither in destinations nor an \
             account, whose home is meant; did you mean family?",
        ),
    ] {
        let told = problems(&with(yaml), &[]);
        assert!(told.contains(expected), "{yaml}: {told}");
    }
}

#[test]
fn a_role_may_name_a_destination_or_the_home_of_an_account() {
    let yaml = with(
        "roles: {friend: {destinations: [family, pigeon]}}\n\
         people: {ann: {identities: [pigeon/ann], role: friend}}\n\
         destinations: {family: {account: pigeon, chat: c}}",
    );
    let loaded = loaded(&yaml, &[]);
    let names = loaded.config().roles["friend"].destinations.clone();
    assert_eq!(names, Some(vec!["family".to_owned(), "pigeon".to_owned()]));
}
