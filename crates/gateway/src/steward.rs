//! The process around the gateway, as far as a conversation can ask something of it.

use std::borrow::Cow;

use async_trait::async_trait;
use talaria_agent::{Destination, Home};
use talaria_model::{AccountId, Address};
use talaria_session::Pause;

/// What only the process around a gateway knows or can do. Every refusal is a whole sentence for the
/// person who asked.
#[async_trait]
pub trait Steward: Send + Sync {
    /// The models that can be asked for, the usual one first.
    fn models(&self) -> Vec<String>;

    /// The whole name of the model that a person means.
    fn model(&self, name: &str) -> Result<String, String>;

    /// Where things go that nobody asked for in a chat.
    fn homes(&self) -> Vec<Home>;

    /// The chats that the operator has named for messages that people have sent there. Who may is not decided
    /// by it.
    fn destinations(&self) -> Vec<Destination>;

    /// Makes a chat the place for what nobody asked for in a chat.
    async fn set_home(&self, at: &Address) -> Result<(), String>;

    /// The accounts that are not to be connected before somebody says so.
    fn paused(&self) -> Vec<AccountId>;

    /// Writes down whether an account is to be connected, for this run and the next.
    async fn keep_paused(&self, account: &AccountId, pause: Pause) -> Result<(), String>;

    /// A text without what must not be said: tokens and keys.
    fn discreet<'a>(&self, text: &'a str) -> Cow<'a, str>;

    /// Reads the configuration again, in somebody's name; says what came of it.
    async fn reload(&self, by: &str) -> Result<String, String>;

    /// Ends the process so that it starts again. Whoever asked is told by the process that starts.
    async fn restart(&self) -> Result<(), String>;

    /// Runs the quick command of this name; says what it printed.
    async fn run(&self, name: &str) -> Result<String, String>;
}

/// Nobody: for a gateway that no process was built around.
pub struct NoSteward;

#[async_trait]
impl Steward for NoSteward {
    fn models(&self) -> Vec<String> {
        Vec::new()
    }

    fn model(&self, name: &str) -> Result<String, String> {
        Err(format!("I cannot switch to {name}: there is one model here."))
    }

    fn homes(&self) -> Vec<Home> {
        Vec::new()
    }

    fn destinations(&self) -> Vec<Destination> {
        Vec::new()
    }

    async fn set_home(&self, _: &Address) -> Result<(), String> {
        Err("I cannot remember a home here.".into())
    }

    fn paused(&self) -> Vec<AccountId> {
        Vec::new()
    }

    async fn keep_paused(&self, _: &AccountId, _: Pause) -> Result<(), String> {
        Ok(())
    }

    fn discreet<'a>(&self, text: &'a str) -> Cow<'a, str> {
        text.into()
    }

    async fn reload(&self, _: &str) -> Result<String, String> {
        Err("There is no configuration here to read again.".into())
    }

    async fn restart(&self) -> Result<(), String> {
        Err("I cannot restart myself here.".into())
    }

    async fn run(&self, name: &str) -> Result<String, String> {
        Err(format!("I do not know how to run `/{name}` here."))
    }
}
