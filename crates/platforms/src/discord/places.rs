//! What is known of guilds, channels and threads, from what Discord tells in passing.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::api;
use super::position::PROMISED;
use super::snowflake::Snowflake;
use crate::wire::recent::Recent;

/// The most channels and threads that are remembered. What is not remembered is asked for.
const CHANNELS: usize = 50_000;

/// The most promises, addresses of files, and own messages that are remembered.
const MOST: usize = 1024;

/// What kinds of channel there are, of which a few matter.
pub(crate) mod kind {
    pub(crate) const TEXT: u64 = 0;
    pub(crate) const DM: u64 = 1;
    pub(crate) const VOICE: u64 = 2;
    pub(crate) const ANNOUNCEMENT: u64 = 5;
    pub(crate) const STAGE: u64 = 13;
    pub(crate) const FORUM: u64 = 15;
    pub(crate) const MEDIA: u64 = 16;

    pub(crate) const fn is_thread(kind: u64) -> bool {
        matches!(kind, 10..=12)
    }

    pub(crate) const fn is_forum(kind: u64) -> bool {
        matches!(kind, FORUM | MEDIA)
    }

    /// Whether people can write in it.
    pub(crate) const fn is_written(kind: u64) -> bool {
        matches!(kind, TEXT | VOICE | ANNOUNCEMENT | STAGE) || is_thread(kind)
    }
}

/// What is known, shared by those who hear and those who speak.
pub(crate) struct Places {
    known: Mutex<Known>,
    /// How many guilds have yet to be described.
    missing: watch::Sender<usize>,
}

struct Known {
    guilds: HashMap<Snowflake, GuildFacts>,
    channels: HashMap<Snowflake, Arc<api::Channel>>,
    missing: HashSet<Snowflake>,
    threads: Recent<Snowflake, Promise>,
    files: Recent<Snowflake, String>,
    echoes: Recent<String, Snowflake>,
}

/// What is known of a guild.
#[derive(Debug, Clone, Default)]
struct GuildFacts {
    name: String,
    roles: HashMap<Snowflake, String>,
    /// The role that Discord made for us, which people pick by mistake when they mean us.
    ours: Option<Snowflake>,
}

/// A thread that was named before it was there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Promise {
    /// The channel it is to be in.
    pub(crate) parent: Snowflake,
    /// What it is to be called, unless the message has to be asked again.
    pub(crate) name: Option<String>,
    /// What became of it.
    pub(crate) kept: Kept,
}

/// What became of a promised thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// It has yet to be made.
    NotYet,
    /// It is there.
    Yes,
    /// It cannot be made; answers go into the channel.
    No,
}

impl Places {
    /// Nothing is known but what was promised.
    pub(crate) fn new(promised: &[(Snowflake, Snowflake)]) -> Self {
        let mut threads = Recent::keeping(MOST);
        for (thread, parent) in promised.iter().rev() {
            let promise = Promise { parent: *parent, name: None, kept: Kept::NotYet };
            threads.insert(*thread, promise);
        }
        let known = Known {
            guilds: HashMap::new(),
            channels: HashMap::new(),
            missing: HashSet::new(),
            threads,
            files: Recent::keeping(MOST),
            echoes: Recent::keeping(MOST),
        };
        Self { known: Mutex::new(known), missing: watch::Sender::new(0) }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// These guilds will be described.
    pub(crate) fn expect(&self, guilds: impl Iterator<Item = Snowflake>) {
        let mut known = self.lock();
        known.missing = guilds.collect();
        self.missing.send_replace(known.missing.len());
    }

    /// Completes when every guild was described.
    pub(crate) async fn complete(&self) {
        // An error means that nobody can describe any more.
        let _ = self.missing.subscribe().wait_for(|missing| *missing == 0).await;
    }

    /// A guild was described.
    pub(crate) fn guild(&self, guild: api::Guild, us: Snowflake) {
        let mut known = self.lock();
        known.missing.remove(&guild.id);
        self.missing.send_replace(known.missing.len());
        if guild.unavailable {
            return;
        }
        let ours = guild
            .roles
            .iter()
            .find(|role| role.tags.as_ref().is_some_and(|tags| tags.bot_id == Some(us)));
        let facts = GuildFacts {
            name: guild.name,
            ours: ours.map(|role| role.id),
            roles: guild.roles.iter().map(|role| (role.id, role.name.clone())).collect(),
        };
        known.guilds.insert(guild.id, facts);
        for channel in guild.channels.into_iter().chain(guild.threads) {
            known.keep(api::Channel { guild_id: Some(guild.id), ..channel });
        }
    }

    /// A guild is out of reach, or we are out of it.
    pub(crate) fn without_guild(&self, guild: Snowflake) {
        let mut known = self.lock();
        known.missing.remove(&guild);
        self.missing.send_replace(known.missing.len());
        known.guilds.remove(&guild);
        known.channels.retain(|_, channel| channel.guild_id != Some(guild));
    }

    /// A channel or thread was described.
    pub(crate) fn channel(&self, channel: api::Channel) -> Arc<api::Channel> {
        self.lock().keep(channel)
    }

    /// A channel or thread is gone.
    pub(crate) fn without_channel(&self, channel: Snowflake) {
        self.lock().channels.remove(&channel);
    }

    pub(crate) fn find(&self, channel: Snowflake) -> Option<Arc<api::Channel>> {
        self.lock().channels.get(&channel).cloned()
    }

    /// Every channel in which people can write, with its newest message.
    pub(crate) fn written(&self) -> Vec<Arc<api::Channel>> {
        let known = self.lock();
        let written = known.channels.values().filter(|channel| kind::is_written(channel.kind));
        written.cloned().collect()
    }

    pub(crate) fn knows_guild(&self, guild: Snowflake) -> bool {
        self.lock().guilds.contains_key(&guild)
    }

    pub(crate) fn guild_name(&self, guild: Snowflake) -> Option<String> {
        self.lock().guilds.get(&guild).map(|guild| guild.name.clone())
    }

    pub(crate) fn role_name(&self, guild: Option<Snowflake>, role: Snowflake) -> Option<String> {
        self.lock().guilds.get(&guild?)?.roles.get(&role).cloned()
    }

    pub(crate) fn our_role(&self, guild: Option<Snowflake>) -> Option<Snowflake> {
        self.lock().guilds.get(&guild?)?.ours
    }

    /// An answer to this message will begin a thread, which has the id of the message.
    pub(crate) fn promise(&self, thread: Snowflake, parent: Snowflake, name: String) {
        let mut known = self.lock();
        if known.threads.get(&thread).is_none() && !known.channels.contains_key(&thread) {
            let promise = Promise { parent, name: Some(name), kept: Kept::NotYet };
            known.threads.insert(thread, promise);
        }
    }

    pub(crate) fn promised(&self, thread: Snowflake) -> Option<Promise> {
        self.lock().threads.get(&thread).cloned()
    }

    /// What became of a promised thread.
    pub(crate) fn settle(&self, thread: Snowflake, kept: Kept) {
        let mut known = self.lock();
        if let Some(promise) = known.threads.get(&thread).cloned() {
            known.threads.insert(thread, Promise { kept, ..promise });
        }
    }

    /// The threads that are still to be made, the newest first, with their channels.
    pub(crate) fn promises(&self) -> Vec<(Snowflake, Snowflake)> {
        let known = self.lock();
        let open = known.threads.newest().filter(|(_, promise)| promise.kept != Kept::Yes);
        open.map(|(thread, promise)| (*thread, promise.parent)).take(PROMISED).collect()
    }

    /// The channel that a thread began in, when its first message is there and not in the thread.
    pub(crate) fn began_in(&self, thread: Snowflake) -> Option<Snowflake> {
        let known = self.lock();
        if let Some(promise) = known.threads.get(&thread) {
            return Some(promise.parent);
        }
        let parent = known.channels.get(&thread)?.parent_id?;
        // The first message of a forum post is in the post.
        let is_forum = known.channels.get(&parent).is_some_and(|it| kind::is_forum(it.kind));
        (!is_forum).then_some(parent)
    }

    /// Where a file was when its message arrived.
    pub(crate) fn note_file(&self, attachment: Snowflake, url: &str) {
        self.lock().files.insert(attachment, url.to_owned());
    }

    pub(crate) fn file(&self, attachment: Snowflake) -> Option<String> {
        self.lock().files.get(&attachment).cloned()
    }

    /// A message of ours came back to us under its nonce.
    pub(crate) fn note_echo(&self, nonce: String, message: Snowflake) {
        self.lock().echoes.insert(nonce, message);
    }

    pub(crate) fn echo(&self, nonce: &str) -> Option<Snowflake> {
        self.lock().echoes.get(&nonce.to_owned()).copied()
    }
}

impl Known {
    fn keep(&mut self, channel: api::Channel) -> Arc<api::Channel> {
        let id = channel.id;
        if kind::is_thread(channel.kind)
            && let Some(promise) = self.threads.get(&id).cloned()
        {
            self.threads.insert(id, Promise { kept: Kept::Yes, ..promise });
        }
        let channel = Arc::new(channel);
        if self.channels.len() < CHANNELS || self.channels.contains_key(&id) {
            self.channels.insert(id, channel.clone());
        }
        channel
    }
}
