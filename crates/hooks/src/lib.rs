//! Programs of the operator's that are told what happens, and that may decide about some of it.
//!
//! A hook is a folder with a `HOOK.yaml` and a program in any language. It is told an event as JSON and
//! answers with JSON, or with nothing. This crate finds hooks, runs them and reads what they decide; it
//! knows nothing of what events mean, and it spawns no tasks: whoever opens it drives [`Hooks::work`].
//!
//! Nobody waits for hooks for long. Telling never waits; asking has a time limit, for one hook and for all
//! of them together; a hook that keeps failing is left alone for a while. What cannot be said to a hook is
//! no failure of it: whoever writes a message must not be able to switch a hook off.
#![forbid(unsafe_code)]

mod breaker;
mod guard;
mod manifest;
mod program;
mod python;
mod ruling;
mod running;
mod safety;

use std::convert::Infallible;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::Shared;
use serde_json::{Value, json};
use talaria_clock::Clock;
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::breaker::Breaker;
use crate::manifest::Handler;

pub use guard::Denied;
pub use manifest::{Manifest, OnFailure};
pub use ruling::{Rewrite, Ruling};

/// Events that wait for one hook; more are dropped, and that is logged.
const WAITING: usize = 256;

/// Questions that wait for one hook; more are answered as its manifest says for a failure.
const ASKED: usize = 64;

/// How long a hook may be busy with something that nobody waits for.
const LONGEST_RUN: Duration = Duration::from_secs(30);

/// How long all hooks together may take to decide about one thing.
const LONGEST_ASKING: Duration = Duration::from_secs(10);

/// How many questions are put at once. No hook has to let one wait that it could answer, so the time of its
/// manifest is its own.
const ASKED_AT_ONCE: usize = 8;

/// The most that a hook is told at once, in bytes. `host.py` has room for that.
const LONGEST_LINE: usize = 4 * 1024 * 1024;

/// The most that a hook may answer, in bytes: room for the longest message, rewritten, with every
/// character of it escaped.
const LONGEST_ANSWER: usize = 2 * 1024 * 1024;

/// How often it is looked whether hooks have finished.
const LOOK: Duration = Duration::from_millis(20);

/// Why a hook did not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HookError {
    /// It took too long.
    #[error("it did not answer in time")]
    Late,
    /// It could not be run, crashed, or said that it went wrong.
    #[error("{0}")]
    Failed(String),
    /// What it answered cannot be understood.
    #[error("its answer cannot be understood: {0}")]
    Garbled(String),
    /// It has more to do than it can.
    #[error("it has too much to do")]
    Busy,
    /// It kept failing and is left alone for a while.
    #[error("it kept failing and is left alone for a while")]
    LeftAlone,
    /// Those who were asked before it took all the time that there was.
    #[error("no time was left to ask it")]
    NoTime,
    /// There is more to tell than a hook can be told.
    #[error("there is more to tell than it can be told at once")]
    TooMuch,
    /// It is not used, and nobody may run it.
    #[error("it is refused; `talaria hooks list` tells why")]
    Refused,
}

impl HookError {
    /// What went wrong, without anything that the hook said: it may have repeated what somebody wrote.
    pub fn in_short(&self) -> String {
        match self {
            Self::Failed(_) => "it went wrong".to_owned(),
            Self::Garbled(_) => "its answer cannot be understood".to_owned(),
            Self::Late
            | Self::Busy
            | Self::LeftAlone
            | Self::NoTime
            | Self::TooMuch
            | Self::Refused => self.to_string(),
        }
    }
}

/// What can happen. `kind:*` is a kind with any names.
#[derive(Debug, Clone, Copy)]
pub struct Events<'a> {
    /// What hooks can hear of.
    pub all: &'a [&'a str],
    /// What they are asked about.
    pub asked: &'a [&'a str],
}

/// A hook that is not used, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Its folder.
    pub folder: PathBuf,
    /// What is wrong, and what to do.
    pub reason: String,
    /// What is denied meanwhile, because it guards that.
    pub denies: Denied,
}

impl Refused {
    fn new(folder: PathBuf, reason: String, events: Events<'_>) -> Self {
        let denies = Denied::by(&folder.join(manifest::MANIFEST), events);
        let meanwhile = denies.in_words().unwrap_or_default();
        tracing::warn!(hook = %folder.display(), %reason, meanwhile, "a hook is not used");
        Self { folder, reason, denies }
    }

    /// What it is called: like its folder, since nobody can say what else is true of it.
    pub fn name(&self) -> String {
        self.folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not used: {}", self.folder.display(), self.reason)?;
        match self.denies.in_words() {
            Some(meanwhile) => write!(f, "; {meanwhile}"),
            None => Ok(()),
        }
    }
}

/// A hook as it is listed.
#[derive(Debug, Clone)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// What it says of itself.
    pub manifest: Manifest,
    /// The program that it is.
    pub program: PathBuf,
}

/// How a hook hears of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// It is asked, and somebody waits for what it decides.
    Asked,
    /// It is told, and nobody looks at what it answers.
    Told,
}

impl Listed {
    /// Whether it wants to hear of an event.
    pub fn wants(&self, event: &str) -> bool {
        self.manifest.fit(event).is_some()
    }

    /// How long it may take.
    pub fn limit(&self, way: Way) -> Duration {
        self.manifest.limit(way)
    }

    /// The program that has to be there for it to be run and is not, as far as can be seen without
    /// running it.
    pub fn missing(&self) -> Option<String> {
        manifest::missing(&self.program)
    }
}

/// How much a hook has done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tally {
    /// Its name.
    pub name: String,
    /// Events that it has heard.
    pub heard: u64,
    /// Events over which it failed.
    pub failed: u64,
    /// Events that it was not told, because it had too much to do or is left alone.
    pub untold: u64,
}

/// What came of asking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// What is to be done.
    pub ruling: Ruling,
    /// The hook that said so; none when nobody had anything to say.
    pub by: Option<String>,
    /// Why that hook did not decide, where its `on_failure` stands in for it.
    pub failure: Option<HookError>,
}

impl Verdict {
    /// Nobody had anything to say.
    const PASS: Self = Self { ruling: Ruling::Pass, by: None, failure: None };

    fn denied_for(by: String, failure: HookError) -> Self {
        Self { ruling: Ruling::Deny { message: None }, by: Some(by), failure: Some(failure) }
    }
}

/// One thing for one hook to hear.
struct Call {
    event: String,
    line: Arc<str>,
    limit: Duration,
    listener: Listener,
    _busy: Busy,
}

/// Who wants to know what a hook answers.
enum Listener {
    Nobody,
    /// Somebody who wants something decided.
    Asker(oneshot::Sender<Result<Ruling, HookError>>),
    /// Somebody who looks at it.
    Tester(oneshot::Sender<Result<Value, HookError>>),
}

impl Listener {
    /// Whether there was somebody who has gone on without an answer.
    fn is_gone(&self) -> bool {
        match self {
            Self::Nobody => false,
            Self::Asker(reply) => reply.is_closed(),
            Self::Tester(reply) => reply.is_closed(),
        }
    }

    /// There will be no answer. Whoever asked may have gone on.
    fn miss(self, error: HookError) {
        match self {
            Self::Nobody => {}
            Self::Asker(reply) => drop(reply.send(Err(error))),
            Self::Tester(reply) => drop(reply.send(Err(error))),
        }
    }
}

/// Counts what hooks have to do.
struct Busy(Arc<AtomicUsize>);

impl Busy {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count.clone())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

struct Hook {
    name: String,
    manifest: Manifest,
    folder: PathBuf,
    handler: Handler,
    breaker: Mutex<Breaker>,
    told: mpsc::Sender<Call>,
    asked: mpsc::Sender<Call>,
    heard: AtomicU64,
    failures: AtomicU64,
    untold: AtomicU64,
}

/// What a hook's own loop listens to.
struct Ears {
    told: mpsc::Receiver<Call>,
    asked: mpsc::Receiver<Call>,
}

/// All hooks of a home.
pub struct Hooks {
    clock: Arc<dyn Clock>,
    hooks: Vec<Arc<Hook>>,
    refused: Vec<Refused>,
    /// Held by whoever drives the hooks.
    ears: Vec<(Arc<Hook>, tokio::sync::Mutex<Ears>)>,
    busy: Arc<AtomicUsize>,
    /// Places for questions.
    places: Semaphore,
}

impl Hooks {
    /// Reads the hooks in a folder, in the order of their names. A folder that is not there has none. One
    /// that others could have changed is refused, and so is each hook in it that they could have, and each that is
    /// for something that cannot happen. What a hook guards that is refused is denied.
    pub fn open(folder: &Path, events: Events<'_>, clock: Arc<dyn Clock>) -> Self {
        let mut all = Self {
            clock,
            hooks: Vec::new(),
            refused: Vec::new(),
            ears: Vec::new(),
            busy: Arc::default(),
            places: Semaphore::new(ASKED_AT_ONCE),
        };
        for (place, read) in manifest::all_in(folder, events.all) {
            match read {
                Ok(found) => {
                    let (hook, own) = Hook::new(place, found);
                    all.hooks.push(hook.clone());
                    all.ears.push((hook, tokio::sync::Mutex::new(own)));
                }
                Err(reason) => all.refused.push(Refused::new(place, reason, events)),
            }
        }
        all
    }

    /// The hooks that are used.
    pub fn listed(&self) -> Vec<Listed> {
        let listed = |hook: &Arc<Hook>| Listed {
            name: hook.name.clone(),
            manifest: hook.manifest.clone(),
            program: hook.handler.path().to_owned(),
        };
        self.hooks.iter().map(listed).collect()
    }

    /// How much each of them has done.
    pub fn tallies(&self) -> Vec<Tally> {
        let tally = |hook: &Arc<Hook>| Tally {
            name: hook.name.clone(),
            heard: hook.heard.load(Ordering::Relaxed),
            failed: hook.failures.load(Ordering::Relaxed),
            untold: hook.untold.load(Ordering::Relaxed),
        };
        self.hooks.iter().map(tally).collect()
    }

    /// Whether none is used, and nothing is denied for the sake of one that is not.
    pub fn is_empty(&self) -> bool {
        self.hooks.is_empty() && self.refused.iter().all(|hook| hook.denies == Denied::Nothing)
    }

    /// Those that are not.
    pub fn refused(&self) -> &[Refused] {
        &self.refused
    }

    /// Whether any hook wants to hear of an event.
    pub fn wants(&self, event: &str) -> bool {
        self.hooks.iter().any(|hook| hook.manifest.fit(event).is_some())
    }

    /// Whether any hook has a say in an event, or would have if it were used.
    pub fn decides(&self, event: &str) -> bool {
        let decides =
            |hook: &Arc<Hook>| hook.manifest.decides && hook.manifest.fit(event).is_some();
        self.hooks.iter().any(decides) || self.guard(event).is_some()
    }

    /// A hook that is refused and for whose sake an event is denied.
    fn guard(&self, event: &str) -> Option<&Refused> {
        self.refused.iter().find(|hook| hook.denies.covers(event))
    }

    /// Those that want to hear of an event: who names it before who names all of its kind.
    fn who(&self, event: &str) -> Vec<&Arc<Hook>> {
        let fits = |hook: &&Arc<Hook>| hook.manifest.fit(event);
        let mut who: Vec<&Arc<Hook>> =
            self.hooks.iter().filter(|hook| fits(hook).is_some()).collect();
        who.sort_by_key(fits);
        who
    }

    /// Tells every hook that wants to hear of it. Never waits: what a hook cannot hear in time is dropped.
    pub fn tell(&self, event: &str, about: &Value) {
        let line = line(event, about);
        for hook in self.who(event) {
            self.tell_one(hook, event, &line);
        }
    }

    fn tell_one(&self, hook: &Hook, event: &str, line: &Arc<str>) {
        let limit = hook.manifest.limit(Way::Told);
        self.send(hook, event, line, &hook.told, limit, Listener::Nobody);
    }

    /// Asks every hook that decides about an event, one after the other, until one has decided. The others
    /// are told. Whoever has not decided after ten seconds has failed to, also where all of them went by
    /// until it could be asked. What a hook guards that is refused is denied, and nobody is asked about it.
    pub async fn ask(&self, event: &str, about: &Value) -> Verdict {
        let line = line(event, about);
        let (decide, hear): (Vec<_>, Vec<_>) =
            self.who(event).into_iter().partition(|hook| hook.manifest.decides);
        for hook in hear {
            self.tell_one(hook, event, &line);
        }
        if let Some(refused) = self.guard(event) {
            return Verdict::denied_for(refused.name(), HookError::Refused);
        }
        if decide.is_empty() {
            return Verdict::PASS;
        }
        let over = self.clock.sleep(LONGEST_ASKING).shared();
        let _place = tokio::select! {
            biased;
            place = self.places.acquire() => place.ok(),
            () = over.clone() => None,
        };
        for hook in decide {
            match self.decide(hook, event, &line, over.clone()).await {
                Ok(Ruling::Pass) => {}
                Ok(ruling) => {
                    return Verdict { ruling, by: Some(hook.name.clone()), failure: None };
                }
                Err(error) => {
                    // That it is left alone was said when that began.
                    if error != HookError::LeftAlone {
                        tracing::warn!(hook = hook.name, event, %error, "a hook did not decide");
                    }
                    if hook.manifest.on_failure == OnFailure::Deny {
                        return Verdict::denied_for(hook.name.clone(), error);
                    }
                }
            }
        }
        Verdict::PASS
    }

    async fn decide(
        &self,
        hook: &Hook,
        event: &str,
        line: &Arc<str>,
        over: Shared<impl Future<Output = ()> + Send>,
    ) -> Result<Ruling, HookError> {
        if over.clone().now_or_never().is_some() {
            return Err(HookError::NoTime);
        }
        // Whether it failed is measured by its own time, not by what others left of it.
        let own = hook.manifest.limit(Way::Asked);
        let (reply, answer) = oneshot::channel();
        self.send(hook, event, line, &hook.asked, own, Listener::Asker(reply));
        tokio::select! {
            biased;
            answer = self.wait(answer, own) => answer,
            () = over => Err(HookError::Late),
        }
    }

    async fn wait<T>(
        &self,
        answer: oneshot::Receiver<Result<T, HookError>>,
        limit: Duration,
    ) -> Result<T, HookError> {
        tokio::select! {
            biased;
            answer = answer => answer.unwrap_or(Err(HookError::Busy)),
            // Nobody waits longer, even if nobody drives the hooks.
            () = self.clock.sleep(limit) => Err(HookError::Late),
        }
    }

    /// Lets one hook hear an event, whatever it has asked to hear, in the time that it has for that, and says
    /// what it answered.
    pub async fn try_one(
        &self,
        name: &str,
        event: &str,
        about: &Value,
        way: Way,
    ) -> Option<Result<Value, HookError>> {
        let hook = self.hooks.iter().find(|hook| hook.name == name)?;
        let (reply, answer) = oneshot::channel();
        let (listener, limit) = (Listener::Tester(reply), hook.manifest.limit(way));
        self.send(hook, event, &line(event, about), &hook.asked, limit, listener);
        Some(self.wait(answer, limit).await)
    }

    fn send(
        &self,
        hook: &Hook,
        event: &str,
        line: &Arc<str>,
        way: &mpsc::Sender<Call>,
        limit: Duration,
        listener: Listener,
    ) {
        let miss = |listener: Listener, error: HookError| {
            hook.untold.fetch_add(1, Ordering::Relaxed);
            listener.miss(error);
        };
        if line.len() > LONGEST_LINE {
            tracing::warn!(hook = hook.name, "an event is longer than a hook can be told");
            return miss(listener, HookError::TooMuch);
        }
        if !hook.lock().lets_through(self.clock.mark()) {
            return miss(listener, HookError::LeftAlone);
        }
        let (event, line, busy) = (event.to_owned(), line.clone(), Busy::new(&self.busy));
        if let Err(error) = way.try_send(Call { event, line, limit, listener, _busy: busy }) {
            let call = match error {
                mpsc::error::TrySendError::Full(call) | mpsc::error::TrySendError::Closed(call) => {
                    call
                }
            };
            tracing::warn!(hook = hook.name, event = call.event, "a hook has too much to do");
            miss(call.listener, HookError::Busy);
        }
    }

    /// Runs the hooks. Nothing is heard by anybody while this is not driven. Whoever was cut off may begin
    /// again; what was being done then has failed.
    pub async fn work(&self) -> Infallible {
        let work = self.ears.iter().map(|(hook, ears)| async move {
            let (mut ears, clock) = (ears.lock().await, self.clock.clone());
            match &hook.handler {
                Handler::Program(_) => program::serve(hook, &mut ears, clock).await,
                Handler::Python(_) => python::serve(hook, &mut ears, clock).await,
            }
        });
        futures::future::join_all(work).await;
        std::future::pending().await
    }

    /// Waits until the hooks have done everything that they were told, but not longer than this.
    pub async fn quiet(&self, limit: Duration) {
        let deadline = self.clock.mark() + limit;
        while self.busy.load(Ordering::Relaxed) > 0 && self.clock.mark() < deadline {
            self.clock.sleep(LOOK).await;
        }
    }
}

impl Hook {
    fn new(folder: PathBuf, found: manifest::Found) -> (Arc<Self>, Ears) {
        let (told, hears) = mpsc::channel(WAITING);
        let (asked, is_asked) = mpsc::channel(ASKED);
        let manifest::Found { name, manifest, handler } = found;
        let breaker = Mutex::default();
        let (heard, failures, untold) = Default::default();
        let hook = Arc::new(Self {
            name,
            manifest,
            folder,
            handler,
            breaker,
            told,
            asked,
            heard,
            failures,
            untold,
        });
        (hook, Ears { told: hears, asked: is_asked })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Breaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells whoever asked, and remembers how it went.
    fn settle(&self, call: Call, answer: Result<Value, HookError>, clock: &dyn Clock) {
        let Call { event, listener, _busy, .. } = call;
        // Whoever asked may have gone on.
        match listener {
            Listener::Asker(reply) => {
                let ruling = answer.and_then(|answer| Ruling::read(&answer));
                self.count(ruling.as_ref().err(), clock);
                let _ = reply.send(ruling);
            }
            Listener::Tester(reply) => {
                self.count(answer.as_ref().err(), clock);
                let _ = reply.send(answer);
            }
            Listener::Nobody => {
                self.count(answer.as_ref().err(), clock);
                if let Err(error) = answer {
                    tracing::warn!(hook = self.name, event, %error, "a hook failed");
                }
            }
        }
    }

    fn count(&self, error: Option<&HookError>, clock: &dyn Clock) {
        if error.is_none() {
            self.heard.fetch_add(1, Ordering::Relaxed);
            return self.lock().answered();
        }
        self.failures.fetch_add(1, Ordering::Relaxed);
        if self.lock().failed(clock.mark()) {
            tracing::warn!(hook = self.name, "a hook keeps failing and is left alone for a while");
        }
    }

    /// Nobody is interested any more, so it is not told.
    fn pass_over(&self, call: Call) {
        self.untold.fetch_add(1, Ordering::Relaxed);
        drop(call);
    }
}

fn line(event: &str, about: &Value) -> Arc<str> {
    let mut line = json!({ "event": event, "context": about }).to_string();
    line.push('\n');
    line.into()
}
