//! The way to servers.

use talaria_model::Proxy;

use crate::{loaded, problems};

#[test]
fn no_proxy_is_used_unless_one_is_configured() {
    let none = loaded("", &["HTTPS_PROXY=http://proxy.example:3128", "ALL_PROXY=socks5://other"]);
    assert!(matches!(none.config().network.proxy, Proxy::None));
    let proxy = |yaml: &str| loaded(yaml, &[]).config().network.proxy.text().to_owned();
    assert_eq!(proxy("network: {proxy: environment}"), "environment");
    assert_eq!(proxy("network: {proxy: none}"), "none");
    assert_eq!(proxy("network: {proxy: 'socks5://127.0.0.1:1080'}"), "socks5://127.0.0.1:1080");
    let told = problems("network: {proxy: 'proxy.example:3128'}", &[]);
    assert!(told.contains("write its address like http://proxy.example.com:3128"), "{told}");
}

#[test]
fn a_password_of_a_proxy_is_hidden_and_the_rest_is_not() {
    let line = |yaml: &str| {
        let loaded = loaded(yaml, &[]);
        let found = loaded.show().into_iter().find(|line| line.path == "network.proxy");
        found.map(|line| line.value.to_string()).unwrap()
    };
    assert_eq!(line("network: {proxy: environment}"), "environment");
    assert_eq!(line("network: {proxy: 'http://proxy:1'}"), "http://proxy:1");
    assert_eq!(line("network: {proxy: 'http://me:hush-hush@proxy:1'}"), "(hidden)");
    let secret = loaded("network: {proxy: 'http://me:hush-hush@proxy:1'}", &[]);
    assert_eq!(secret.redact("it said hush-hush"), "it said (hidden)");
    let told = problems("network: {proxy: 'ftp://me:hush-hush@proxy'}", &[]);
    assert!(told.contains("network.proxy: (hidden)") && !told.contains("hush"), "{told}");
    let escaped = loaded("network: {proxy: 'http://me:p%40ss-word@proxy:1'}", &[]);
    assert_eq!(escaped.redact("p@ss-word p%40ss-word"), "(hidden) (hidden)");
    // A word is no secret that would be taken out of what people say.
    let word = loaded("network: {proxy: environment}", &[]);
    assert_eq!(word.redact("the environment"), "the environment");
}

#[test]
fn a_password_of_the_environment_s_proxy_is_hidden_where_that_proxy_counts() {
    let said = "hush-hush p@ss-word of proxy.example";
    let variables = [
        "HTTPS_PROXY=http://me:hush-hush@proxy.example:3128",
        "all_proxy=me:p%40ss-word@proxy.example:1080",
        "NO_PROXY=hush.example",
    ];
    let environment = loaded("network: {proxy: environment}", &variables);
    assert_eq!(environment.redact(said), "(hidden) (hidden) of proxy.example");
    assert_eq!(environment.redact("p%40ss-word"), "(hidden)");
    let none = loaded("", &variables);
    assert_eq!(none.redact(said), said, "nobody asks it");
}
