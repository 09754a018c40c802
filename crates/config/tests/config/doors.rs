//! No combination of settings opens a door by accident, and no input breaks the loader.

use proptest::prelude::*;
use talaria_config::{Sources, load};

use crate::{loaded, platforms, problems, try_load};

#[test]
fn listening_beyond_this_machine_needs_names() {
    let refused = "can be reached from other machines; list the names people use for this gateway \
                   in http.allowed_hosts, or listen on 127.0.0.1";
    for address in ["0.0.0.0:80", "[::]:80", "192.168.1.2:80", "[::ffff:192.168.1.2]:80"] {
        assert_eq!(
            problems(&format!("http:\n  listen: '{address}'"), &[]),
            format!("config.yaml:2: http.listen: {address} {refused}")
        );
        loaded(
            &format!("http: {{listen: '{address}', allowed_hosts: [gateway.example.com]}}"),
            &[],
        );
    }
    for address in ["127.0.0.1:0", "127.1.2.3:80", "[::1]:80", "[::ffff:127.0.0.1]:80"] {
        loaded(&format!("http: {{listen: '{address}'}}"), &[]);
    }
    assert_eq!(
        problems("", &["TALARIA_HTTP__LISTEN=0.0.0.0:80"]),
        format!("TALARIA_HTTP__LISTEN: http.listen: 0.0.0.0:80 {refused}")
    );
}

#[test]
fn a_name_that_is_no_name_is_not_an_allowed_host() {
    let check = |host: &str, expect: &str| {
        let yaml = format!("http: {{listen: '0.0.0.0:80', allowed_hosts: ['{host}']}}");
        let expect = format!("config.yaml:1: http.allowed_hosts[0]: \"{host}\" {expect}");
        assert_eq!(problems(&yaml, &[]), expect);
    };
    check("*", "allows names nobody has thought of; list each name");
    check("*.example.com", "allows names nobody has thought of; list each name");
    check("https://example.com", "is more than a name; write it like gateway.example.com");
    check("", "is not the name of a host; write it like gateway.example.com");
    check(" ", "is not the name of a host; write it like gateway.example.com");
    check("-", "is not the name of a host; write it like gateway.example.com");
    let loaded = loaded("http: {allowed_hosts: ['Gateway.Example.com:8443', '[fd00::1]']}", &[]);
    assert_eq!(loaded.config().http.allowed_hosts, ["gateway.example.com:8443", "[fd00::1]"]);
}

fn address() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("127.0.0.1:8420".to_owned()),
        Just("[::1]:1".to_owned()),
        Just("0.0.0.0:80".to_owned()),
        any::<std::net::SocketAddr>().prop_map(|address| address.to_string()),
    ]
}

fn hosts() -> impl Strategy<Value = String> {
    let host =
        prop_oneof!["", " ", "\\*", "[a-z]{1,8}", "[a-z]{1,4}\\.[a-z]{2}", ",", "~", "[^\n']{0,6}"];
    prop::collection::vec(host, 0..3).prop_map(|hosts| {
        let hosts: Vec<String> = hosts.iter().map(|host| format!("'{host}'")).collect();
        format!("[{}]", hosts.join(", "))
    })
}

proptest! {
    #[test]
    fn no_combination_opens_a_listener_without_allowed_hosts(
        file_address in prop::option::of(address()),
        file_hosts in prop::option::of(hosts()),
        dotenv_address in prop::option::of(address()),
        dotenv_hosts in prop::option::of("[a-z,*. ]{0,6}"),
        address in prop::option::of(address()),
        hosts in prop::option::of(hosts()),
        whole in prop::option::of(address()),
        also in "(model: x\n|agent: ~\n|group_sessions_per_user: false\n)?",
    ) {
        let mut yaml = format!("{also}http:\n");
        yaml.extend(file_address.iter().map(|address| format!("  listen: '{address}'\n")));
        yaml.extend(file_hosts.iter().map(|hosts| format!("  allowed_hosts: {hosts}\n")));
        let mut dotenv = String::new();
        dotenv.extend(dotenv_address.iter().map(|it| format!("TALARIA_HTTP__LISTEN={it}\n")));
        dotenv.extend(dotenv_hosts.iter().map(|it| format!("TALARIA_HTTP__ALLOWED_HOSTS={it}\n")));
        let mut sources = Sources::default().with_config(yaml).with_dotenv(dotenv);
        for (name, value) in [("LISTEN", address), ("ALLOWED_HOSTS", hosts)] {
            if let Some(value) = value {
                sources = sources.with_variable(format!("TALARIA_HTTP__{name}"), value);
            }
        }
        if let Some(address) = whole {
            sources = sources.with_variable("TALARIA_HTTP", format!("{{listen: '{address}'}}"));
        }
        if let Ok(loaded) = load(sources, &platforms::ALL) {
            let http = &loaded.config().http;
            let is_private = http.listen.ip().to_canonical().is_loopback();
            prop_assert!(is_private || !http.allowed_hosts.is_empty());
            for host in &http.allowed_hosts {
                prop_assert!(host.contains(|c: char| c.is_ascii_alphanumeric()));
                prop_assert!(!host.contains('*'));
            }
        }
    }

    #[test]
    fn any_text_is_a_configuration_or_a_list_of_problems(text in any::<String>()) {
        prop_assert!(try_load(&text, &[]).is_ok() || !problems(&text, &[]).is_empty());
    }

    #[test]
    fn text_that_looks_like_a_configuration_does_not_break_the_loader(
        words in prop::collection::vec(prop::sample::select(WORDS), 0..40),
        variable in "(TALARIA_(HTTP|AGENT|ACCOUNTS|PROVIDERS|MODEL)(__[A-Z_\\[\\]é]{0,6}){0,3}|OTHER)",
        value in "[a-z0-9{}\\[\\]:, é*&!|>-]{0,12}",
    ) {
        let text = words.concat();
        let sources = Sources::default().with_config(&text).with_dotenv(&text);
        let sources = sources.with_variable(variable, value);
        if let Err(problems) = load(sources, &platforms::ALL) {
            prop_assert!(problems.iter().count() > 0);
            prop_assert!(problems.iter().all(|finding| !finding.to_string().is_empty()));
        }
    }
}

/// What configurations are made of, and what breaks them.
const WORDS: &[&str] = &[
    "model",
    "agent",
    "turn_limit",
    "max_steps",
    "accounts",
    "pigeon",
    "token",
    "route",
    "by",
    "map",
    "roofs",
    "providers",
    "headers",
    "extra_body",
    "http",
    "listen",
    "allowed_hosts",
    "x-a",
    ": ",
    ":",
    "\n",
    "\n  ",
    "\n    ",
    "\n- ",
    "{",
    "}",
    "[",
    "]",
    ", ",
    "'",
    "\"",
    "&a ",
    "*a",
    "<<: *a",
    "!!int ",
    "!!str ",
    "!x ",
    "| ",
    "> ",
    "~",
    "null",
    "true",
    "30m",
    "25MB",
    "127.0.0.1:1",
    "0",
    "-1",
    "1e999",
    ".inf",
    "99999999999999999999999",
    "é",
    "\u{0}",
    "\u{feff}",
    "\t",
    "#",
    "---\n",
    "...\n",
    "? ",
    "%YAML 1.2\n",
    "\r\n",
    "=",
];
