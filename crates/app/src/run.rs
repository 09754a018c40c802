//! `talaria run`: the gateway in the foreground.

use std::io::{IsTerminal, Write};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use talaria_admin::Operator;
use talaria_admin::guests::OPERATOR;
use talaria_clock::{Clock, Mark, SystemClock};
use talaria_config::Sources;
use talaria_gateway::{AccountState, AccountStatus, Gateway};
use talaria_machine::{parent, service};

use crate::boot::Boot;
use crate::cli::RunOptions;
use crate::desk::Desk;
use crate::discretion::Discretion;
use crate::ending::{self, Ending, Pace, Sender, Why};
use crate::exit::{Exit, Halt};
use crate::home::Home;
use crate::instance::Kind;
use crate::last_good::{self, Booted, Older};
use crate::logging::{self, Log};
use crate::plain::plain;
use crate::signals::{self, Signals};
use crate::start::{self, Prepared, Running};
use crate::state_file::{LastSeen, StateFile};
use crate::{again, init, instance, web_link};

/// How long is waited for every account before it is said where to talk to the gateway meanwhile.
const SOON: Duration = Duration::from_secs(1);

/// What it is called, with its version.
const NAME: &str = concat!("talaria ", env!("CARGO_PKG_VERSION"));

/// Runs until a signal, `talaria stop` or `/restart` ends it.
pub(crate) async fn run(home: &Home, options: RunOptions, begun: Mark) -> Result<Exit, Halt> {
    let mut signals = Signals::listen()?;
    let state_file = StateFile::new(home, Kind::TalariaGateway);
    let usable = tokio::select! {
        usable = instance::starts::hold_up(home.prepare()) => usable,
        why = signals.end(home) => return Ok(exit(&why)),
    };
    usable.inspect_err(|halt| {
        // Nothing is left behind in a folder that never was a home.
        if LastSeen::read(home).is_some() {
            state_file.startup_failed(home, &halt.explained());
        }
    })?;
    let failed = |halt: Halt, log: Option<Log>| {
        state_file.startup_failed(home, &halt.explained());
        logging::not_started(home, log, &halt.explained());
        halt
    };
    let mut log = None;
    let ready = tokio::select! {
        ready = prepare(home, options, begun, &mut log) => ready,
        why = signals.end(home) => {
            // What it has begun is only what another start finds, too.
            state_file.never_started(home, &why.in_words());
            return Ok(exit(&why));
        }
    };
    let Ready { prepared, sources, older } = match ready {
        Ok(ready) => ready,
        Err(halt) => return Err(failed(halt, log)),
    };
    // From here on something is in hand that has to be ended in good order.
    let mut starting = pin!(begin(home, prepared, sources, older));
    let mut ended = None;
    let running = loop {
        tokio::select! {
            running = &mut starting => break running,
            why = signals.end(home) => match ended {
                None => ended = Some(why),
                Some(first) if first.is_planned() => return Ok(Exit::Done),
                Some(_) => return Err(signals::hurried()),
            },
        }
    };
    let running = match running {
        Ok(running) => running,
        Err(halt) => {
            let halt = failed(halt, log);
            // Nobody wants it back, whatever kept it from starting.
            let is_planned = ended.is_some_and(|why| why.is_planned());
            return if is_planned { Ok(Exit::Done) } else { Err(halt) };
        }
    };
    let (desk, chores) = (running.desk.clone(), running.chores.clone());
    if let Some(why) = ended {
        desk.end(Ending::ForGood, why);
    }
    announce(home, &running);
    let served = tokio::select! {
        served = running.serve() => served,
        halt = signals.heed(home, desk.clone(), &chores) => Err(halt),
    };
    let (decided, pace) = desk.ending();
    if let Some((Ending::ForGood, why)) = &decided
        && why.is_planned()
    {
        // Nobody wants it back, however it went, and a manager starts again whatever fails.
        if let Err(halt) = &served {
            tracing::error!(problem = halt.explained(), "it did not end in good order");
        }
        return Ok(Exit::Done);
    }
    served?;
    match (decided, pace) {
        (_, Pace::Hurried) => Err(signals::hurried()),
        // It would not be asked again.
        (Some((Ending::Again, _)), _) if signals.ask_for_an_end() => Ok(Exit::Done),
        (Some((Ending::Again, _)), _) => {
            // Nothing is dropped any more when another program is in its place.
            drop(log);
            again::start_again()
        }
        (_, Pace::CutOff(after)) => Err(Halt::failed(format_args!(
            "it did not come to an end within {} s and was cut off",
            after.as_secs()
        ))
        .hint("what was unfinished goes on at the next start; its log says what it waited for")),
        (Some((Ending::ForGood, why)), _) => Ok(exit(&why)),
        (None, _) => Ok(Exit::Done),
    }
}

/// How the process ends that was ended for this.
fn exit(why: &Why) -> Exit {
    if is_unplanned(why) { Exit::Again } else { Exit::Done }
}

/// A gateway that can be started.
struct Ready {
    prepared: Prepared,
    /// What its configuration was read from.
    sources: Sources,
    /// Where its configuration is an older one than people edit.
    older: Option<Older>,
}

/// Prepares it on a home that can be used. The log begins as soon as it is known how it is to be kept.
async fn prepare(
    home: &Home,
    options: RunOptions,
    begun: Mark,
    log: &mut Option<Log>,
) -> Result<Ready, Halt> {
    let mut boot = Boot::new(begun);
    // Before a gateway is ended that works: this one has to be able to start.
    let booted = last_good::configuration(home).await;
    let Booted { loaded, sources, older } = instance::starts::hold_up(booted).await?;
    let discretion = Discretion::new();
    discretion.learn(&loaded);
    let log = log.insert(logging::start(home, &loaded.config().log, &discretion));
    for warning in start::warnings(&loaded) {
        tracing::warn!("{warning}");
    }
    boot.passed("configuration");
    if service::restarts_us() {
        instance::starts::pace(home).await;
        boot.passed("starts");
    }
    if options.replace {
        start::openable(home)?;
        instance::take_over(home, ending::longest(loaded.config())).await?;
        boot.passed("takeover");
    }
    let lock = instance::lock(home).await?;
    // Another gateway may have written there until now.
    log.keep();
    let prepared = start::prepare(home, lock, loaded, None, discretion, boot).await?;
    if let Some(older) = &older {
        prepared.hold(&older.waiting);
    }
    Ok(Ready { prepared, sources, older })
}

async fn begin(
    home: &Home,
    prepared: Prepared,
    sources: Sources,
    older: Option<Older>,
) -> Result<Running, Halt> {
    let running = prepared.start().await?;
    running.desk.applies(&sources);
    match older {
        None => {
            let changes = last_good::changes(home, &sources);
            if running.desk.record(&changes, OPERATOR).await.is_ok() {
                running.desk.works(sources);
            }
        }
        Some(Older { wrong, waiting }) => {
            tracing::error!(
                "an older configuration applies, because the one that is there is wrong: {wrong}"
            );
            running.desk.finds_wrong(Some(wrong));
            running.desk.holds_back(waiting);
        }
    }
    Ok(running)
}

/// Whether somebody has ended a service behind its manager's back, which then is to start it again.
fn is_unplanned(why: &Why) -> bool {
    match why {
        Why::Signal { name: "SIGTERM", sender: Some(Sender { pid, .. }) } => {
            service::restarts_us() && parent(std::process::id()) != Some(*pid)
        }
        _ => false,
    }
}

/// Lets it be said where to talk to the gateway.
fn announce(home: &Home, running: &Running) {
    let (home, http, boot) = (home.clone(), running.http, running.boot.clone());
    let (gateway, desk) = (running.gateway.clone(), running.desk.clone());
    running.chores.begin("word that it is ready", move || {
        say_it(home.clone(), http, boot.clone(), gateway.clone(), desk.clone())
    });
}

/// Says where to talk to it as soon as that is possible, and that it is ready when every account serves or
/// is known not to.
async fn say_it(home: Home, http: SocketAddr, mut boot: Boot, gateway: Gateway, desk: Arc<Desk>) {
    gateway.first_connections().await;
    boot.passed("web page and terminal");
    let slow = tokio::select! {
        biased;
        () = gateway.every_connection() => false,
        () = SystemClock.sleep(SOON) => true,
    };
    if slow {
        let waiting = gateway.accounts().into_iter().filter(|account| !account.tried);
        let names: Vec<_> = waiting.map(|account| account.id.to_string()).collect();
        tracing::info!(accounts = names.join(", "), "still connecting");
        let head = format!("{NAME} is starting; still connecting: {}", names.join(", "));
        say_where(&home, http, &desk, &head);
        gateway.every_connection().await;
    }
    boot.passed("connections");
    let failing = failing(&gateway.accounts(), &desk);
    tracing::info!(
        phases = boot.in_words(),
        total_ms = boot.total(),
        failing = failing.len(),
        "started"
    );
    let mut head = format!("{NAME} is ready after {} ms", boot.total());
    for account in &failing {
        head.push_str(&format!("\n  failing    {account}"));
    }
    let refused = desk.refused_hooks();
    for hook in &refused {
        head.push_str(&format!("\n  refused    hook {}", plain(&hook.problem)));
    }
    if slow {
        print(&format!("{head}\n"));
    } else {
        say_where(&home, http, &desk, &head);
    }
    let model = desk.model();
    let mut state = format!("answers with {model}");
    if !failing.is_empty() {
        state.push_str(&format!("; failing: {}", failing.join("; ")));
    }
    if !refused.is_empty() {
        let names: Vec<&str> = refused.iter().map(|hook| hook.name.as_str()).collect();
        state.push_str(&format!("; hooks that are not used: {}", plain(&names.join(", "))));
    }
    init::ready(&state);
}

/// Which accounts do not serve, and why.
fn failing(accounts: &[AccountStatus], desk: &Desk) -> Vec<String> {
    let problem = |account: &AccountStatus| {
        let problem = match &account.state {
            AccountState::Connected | AccountState::Paused => return None,
            AccountState::Connecting => "connecting".to_owned(),
            AccountState::Waiting { reason }
            | AccountState::Deaf { reason }
            | AccountState::Unproven { reason } => reason.clone(),
            AccountState::Contested { problem, hint }
            | AccountState::Refused { problem, hint }
            | AccountState::Fatal { problem, hint } => format!("{problem}; {hint}"),
        };
        let line = format!("{}: {problem}", account.id);
        Some(desk.redact(&line).replace(char::is_control, " "))
    };
    accounts.iter().filter_map(problem).collect()
}

/// Plain lines: this is read by people and by scripts.
fn say_where(home: &Home, http: SocketAddr, desk: &Desk, head: &str) {
    let web = if desk.serves_web() { web_in_words(home, http) } else { String::new() };
    print(&format!(
        "{head}\n{web}\n  \
         terminal   talaria chat\n  \
         model      {}\n  \
         home       {}\n\n\
         Ctrl-C ends it; what is unfinished goes on at the next start.\n",
        desk.model_and_why(),
        home.path().display(),
    ));
}

/// Where the web chat is. Only a person at a terminal is shown a link that logs in: everything else that reads
/// this keeps it, and the journal of a machine is read by others, too.
fn web_in_words(home: &Home, http: SocketAddr) -> String {
    if !std::io::stdout().is_terminal() {
        let page = web_link::page(http);
        return format!(
            "\n  web chat   {page}\n             (`talaria open` prints a link that logs in)"
        );
    }
    match web_link::fresh(home, http) {
        Ok(link) => format!(
            "\n  web chat   {link}\n             (works once, for ten minutes; `talaria open` prints another)"
        ),
        Err(halt) => {
            tracing::error!(problem = halt.explained(), "nobody can be led to the web page");
            format!("\n  web chat   {}", halt.explained())
        }
    }
}

fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    // A closed pipe is no reason not to run.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
