//! How accounts speak.

use talaria_config::{Config, ReplyToMode, StreamingSettings, TransportSetting};
use talaria_model::AccountId;

use crate::{loaded, problems};

fn config(yaml: &str) -> Config {
    loaded(yaml, &[]).config().clone()
}

#[test]
fn answers_are_shown_while_they_grow_unless_somebody_says_otherwise() {
    let StreamingSettings {
        transport,
        edit_interval,
        buffer_threshold,
        cursor,
        fresh_final_after_seconds,
    } = config("").streaming;
    assert_eq!(transport, TransportSetting::Auto);
    assert_eq!((edit_interval, buffer_threshold), (0.8, 24));
    assert_eq!((cursor.as_str(), fresh_final_after_seconds), (" ▉", 60));
}

#[test]
fn an_account_says_what_is_different_on_it() {
    let config = config(
        "streaming: {transport: edit, edit_interval: 2, cursor: \"\"}\n\
         accounts: {pigeon: {token: t, allow: [1], streaming: {transport: off, buffer_threshold: 1}, \
         reply_to_mode: all}}\n",
    );
    let account = &config.accounts[&AccountId::literal("pigeon")];
    assert_eq!(account.reply_to_mode, ReplyToMode::All);
    let own = config.streaming.clone().with(&account.streaming);
    assert_eq!(own.transport, TransportSetting::Off);
    assert_eq!((own.edit_interval, own.buffer_threshold, own.cursor.as_str()), (2.0, 1, ""));
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (yaml, problem) in [
        (
            "streaming: {transport: pigeon}",
            "config.yaml:1: streaming.transport: \"pigeon\" is not one of auto, draft, edit, off",
        ),
        (
            "streaming: {edit_interval: 0}",
            "config.yaml:1: streaming.edit_interval: 0 is too small; the least is 0.1",
        ),
        (
            "accounts: {pigeon: {token: t, allow: [1], reply_to_mode: some}}",
            "config.yaml:1: accounts.pigeon.reply_to_mode: \"some\" is not one of off, first, all",
        ),
    ] {
        assert_eq!(problems(yaml, &[]), problem);
    }
}
