//! How a gateway is doing, for operators, scripts and service managers.

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use serde_json::Value;
use talaria_clock::{Clock, SystemClock};
use talaria_testkit::{Hold, Home, Launch, VendorSettings, within};
use tokio::net::UnixDatagram;

use crate::rig::{HANGS, Rig, binary, run};

fn state(home: &Path) -> Value {
    let bytes = std::fs::read(home.join("gateway_state.json")).unwrap_or_default();
    // Replaced as a whole, so it is never half there; it may not be there yet.
    if bytes.is_empty() { Value::Null } else { serde_json::from_slice(&bytes).unwrap() }
}

/// Completes with the file once it is like this.
async fn state_that(home: &Path, is: impl Fn(&Value) -> bool) -> Value {
    let looking = async {
        loop {
            let state = state(home);
            if is(&state) {
                return state;
            }
            SystemClock.sleep(Duration::from_millis(20)).await;
        }
    };
    let found = tokio::time::timeout(HANGS, looking).await;
    found.unwrap_or_else(|_| panic!("in vain: {}", state(home)))
}

fn reports(home: &Path) -> Vec<PathBuf> {
    let folder = std::fs::read_dir(home.join("logs")).unwrap();
    let files = folder.map(|file| file.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|ending| ending == "json")).collect()
}

#[tokio::test]
async fn a_file_tells_how_the_gateway_is_doing_from_its_start_to_its_end() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    rig.start().await;
    let home = rig.home.path().to_owned();
    let is_running = |state: &Value| {
        let phases = state["boot"].as_array().into_iter().flatten();
        state["gateway_state"] == "running"
            && phases.into_iter().any(|phase| phase["name"] == "connections")
    };
    let running = state_that(&home, is_running).await;
    assert_eq!(running["pid"], rig.process().pid());
    assert_eq!(running["kind"], "talaria-gateway");
    assert_eq!(running["platforms"]["bench"]["state"], "connected");
    assert!(running["platforms"]["bench"]["mute"].is_null(), "{running}");
    assert_eq!(running["restart_requested"], false);
    let (_, output) = run(&home, &["status"]).await;
    assert!(output.contains("running for"), "{output}");
    let (_, output) = run(&home, &["status", "--json"]).await;
    assert_eq!(serde_json::from_str::<Value>(&output).unwrap()["state"], "ready", "{output}");
    let phases = running["boot"].as_array().unwrap();
    let named = |name: &str| phases.iter().any(|phase| phase["name"] == name);
    assert!(named("configuration") && named("store"), "{phases:?}");
    assert!(rig.process().output().contains("total_ms="), "{}", rig.process().output());

    rig.llm.hold(Hold::BeforeAnswering);
    rig.vendor.say("ann", "hello");
    rig.llm.until_requests(1).await;
    rig.process().terminate().unwrap();
    let draining = state_that(&home, |state| state["gateway_state"] == "draining").await;
    assert_eq!(draining["active_agents"], 1);
    let (_, output) = run(&home, &["status"]).await;
    assert!(output.contains("ending") && !output.contains("running for"), "{output}");
    let (_, output) = run(&home, &["status", "--json"]).await;
    let told: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(told["state"], "draining", "{output}");
    rig.llm.hold(Hold::Never);
    let ended = within(HANGS, "the end", rig.process().ended()).await.unwrap();
    assert!(ended.success(), "{ended}");
    let stopped = state(&home);
    assert_eq!(stopped["gateway_state"], "stopped");
    assert_eq!(stopped["platforms"]["bench"]["state"], "disconnected");
    let why = format!("SIGTERM from process {}", std::process::id());
    assert_eq!(stopped["exit_reason"], why.as_str());
    let (_, output) = run(&home, &["status"]).await;
    assert!(output.contains(&why), "{output}");
    let (ended, output) = run(&home, &["status", "--json"]).await;
    let told: Value = serde_json::from_str(&output).unwrap();
    assert!(!ended.success() && told["problem"].as_str().unwrap().contains(&why), "{output}");

    rig.start().await;
    state_that(&home, |state| state["gateway_state"] == "running").await;
    rig.kill().await;
    let (_, output) = run(&home, &["status"]).await;
    assert!(output.contains("died without a word"), "{output}");

    // Nothing is left to begin with instead.
    std::fs::remove_dir_all(home.join("last-good")).unwrap();
    rig.home.write("config.yaml", "agent:\n  max_steps: many\n").unwrap();
    run(&home, &["run"]).await;
    let failed = state(&home);
    assert_eq!(failed["gateway_state"], "startup_failed");
    assert!(failed["exit_reason"].as_str().unwrap().contains("agent.max_steps"), "{failed}");
}

#[tokio::test]
async fn what_went_on_at_the_end_is_written_down() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    rig.start().await;
    rig.llm.hold(Hold::BeforeAnswering);
    rig.vendor.say("ann", "a secret");
    rig.llm.until_requests(1).await;
    rig.process().terminate().unwrap();
    let waits = |line: &str| line.contains("still ending") && line.contains("a turn in bench:ann");
    within(HANGS, "the note in the log", rig.process().line(waits)).await;
    rig.llm.hold(Hold::Never);
    let ended = within(HANGS, "the end", rig.process().ended()).await.unwrap();
    assert!(ended.success(), "{ended}");
    let [report] = &reports(rig.home.path())[..] else { panic!("one report") };
    let text = std::fs::read_to_string(report).unwrap();
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["why"]["name"], "SIGTERM");
    assert_eq!(report["why"]["sender"]["pid"], std::process::id());
    assert_eq!(report["ancestors"][0]["pid"], std::process::id());
    assert_eq!(report["turns"].as_array().unwrap().len(), 1, "{text}");
    assert_eq!(report["turns"][0]["chat"], "ann");
    assert!(text.contains("bench") && report["tasks"]["in_runtime"].as_u64() > Some(0), "{text}");
    let lane = &report["lanes"][0];
    assert!(lane["session"].as_str().unwrap().contains("ann"), "{text}");
    assert_eq!(lane["phase"], "thinking", "{text}");
    assert!(lane["since"].is_string(), "{text}");
    let accounts = report["accounts"].as_array().unwrap();
    let bench = accounts.iter().find(|account| account["name"] == "bench").unwrap();
    assert_eq!((&bench["order"], &bench["speaks"]), (&"runs".into(), &true.into()), "{text}");
    assert!(bench["generation"].as_u64() >= Some(1), "{text}");
    assert!(report["chats"].is_array(), "{text}");
    let chores = report["chores"].as_array().unwrap();
    let watchdog = chores.iter().find(|chore| chore["name"] == "watchdog").unwrap();
    assert_eq!((&watchdog["begun"], &watchdog["is_done"]), (&1.into(), &false.into()), "{text}");
    assert!(report["at_the_end"].is_null(), "{text}");
    assert_eq!(report["ended"]["how"], "finished");
    assert_eq!(report["ended"]["clean"], true);
    assert_eq!(report["ended"]["left"].as_array().unwrap().len(), 0);
    assert!(!text.contains("secret"), "{text}");
}

#[tokio::test]
async fn probes_tell_strangers_one_word_and_this_user_everything() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    // Nobody listens there.
    add_account(&rig.home, "gone", "127.0.0.1:9");
    rig.start().await;
    let address = rig.process().address().await;
    let ask = async |path: &str| {
        let answer = reqwest::get(format!("{address}{path}")).await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    assert_eq!(ask("/startupz").await, (200, r#"{"status":"started"}"#.into()));
    let degraded = async {
        while ask("/readyz").await != (200, r#"{"status":"degraded"}"#.to_owned()) {
            SystemClock.sleep(Duration::from_millis(20)).await;
        }
    };
    within(HANGS, "an account to be known not to work", degraded).await;
    let local =
        reqwest::Client::builder().unix_socket(rig.home.file("gateway.sock")).build().unwrap();
    // It is tried again and again; between two tries it is known what is wrong.
    let named = async {
        loop {
            let told: Value =
                local.get("http://talaria/readyz").send().await.unwrap().json().await.unwrap();
            assert_eq!(told["status"], "degraded");
            let accounts = told["accounts"].as_array().unwrap();
            let of = |name: &str| accounts.iter().find(|account| account["name"] == name).unwrap();
            assert_eq!(of("bench")["state"], "connected", "{told}");
            assert!(of("bench").get("problem").is_none_or(Value::is_null), "{told}");
            if let Some(problem) = of("gone")["problem"].as_str() {
                return problem.to_owned();
            }
            SystemClock.sleep(Duration::from_millis(20)).await;
        }
    };
    let problem = within(HANGS, "what is wrong with the account", named).await;
    assert!(problem.to_lowercase().contains("refused"), "{problem}");

    rig.llm.hold(Hold::BeforeAnswering);
    rig.vendor.say("ann", "hello");
    rig.llm.until_requests(1).await;
    rig.process().terminate().unwrap();
    within(HANGS, "the note in the log", rig.process().line(|line| line.contains("ending"))).await;
    assert_eq!(ask("/readyz").await, (503, r#"{"status":"draining"}"#.into()));
    assert_eq!(ask("/healthz").await, (204, String::new()), "it takes in what is said");
    rig.llm.hold(Hold::Never);
    within(HANGS, "the end", rig.process().ended()).await.unwrap();
}

#[tokio::test]
async fn a_gateway_whose_platforms_cannot_be_reached_is_not_ready() {
    let rig = Rig::new(VendorSettings::default(), &[]).await;
    let written = std::fs::read_to_string(rig.home.file("config.yaml")).unwrap();
    let nobody = written.replace(&rig.vendor.address().to_string(), "127.0.0.1:9");
    rig.home.write("config.yaml", &nobody).unwrap();
    let mut process = rig.launch.start(rig.home.path()).unwrap();
    within(HANGS, "ready", process.ready()).await.unwrap();
    let address = process.address().await;
    let answer = reqwest::get(format!("{address}/readyz")).await.unwrap();
    let (status, word) = (answer.status().as_u16(), answer.text().await.unwrap());
    assert_eq!((status, word.as_str()), (503, r#"{"status":"unconnected"}"#));
    let answer = reqwest::get(format!("{address}/healthz")).await.unwrap();
    assert_eq!(answer.status().as_u16(), 204, "the web page and the terminal work");
}

/// Adds an account in front of the others.
fn add_account(home: &Home, name: &str, address: &str) {
    let written = std::fs::read_to_string(home.file("config.yaml")).unwrap();
    let account = format!(
        "accounts:\n  {name}:\n    platform: loopback\n    address: \"{address}\"\n    \
         allow_everyone: true\n"
    );
    home.write("config.yaml", &written.replace("accounts:\n", &account)).unwrap();
}

#[tokio::test]
async fn an_account_that_hangs_delays_nobody_and_is_named_until_it_is_known_to_fail() {
    let rig = Rig::new(VendorSettings::default(), &[]).await;
    // Whoever connects hears nothing: the queue is full and nobody is taken from it.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let silent = socket.listen(1).unwrap();
    let address = silent.local_addr().unwrap();
    let mut queue: FuturesUnordered<_> =
        (0..4).map(|_| tokio::net::TcpStream::connect(address)).collect();
    let mut places = Vec::new();
    for _ in 0..2 {
        places.push(within(HANGS, "a place in the queue", queue.next()).await);
    }
    add_account(&rig.home, "deaf", &address.to_string());
    let mut process = rig.launch.start(rig.home.path()).unwrap();
    let told = |line: &str| line.contains("is starting; still connecting: deaf");
    within(HANGS, "where to talk to it meanwhile", process.line(told)).await;
    rig.until("the others to connect", |truth| truth.connections() > 0).await;
    rig.vendor.say("ann", "hello");
    rig.until_everything_is_answered().await;
    let address = process.address().await;
    for (path, word) in [("/startupz", "starting"), ("/readyz", "starting")] {
        let answer = reqwest::get(format!("{address}{path}")).await.unwrap();
        assert_eq!(answer.status().as_u16(), 503, "{path}");
        assert!(answer.text().await.unwrap().contains(word), "{path}");
    }
    assert!(!process.output().contains("is ready"), "{}", process.output());
    drop(silent);
    within(HANGS, "ready", process.ready()).await.unwrap();
    let failing = |line: &str| line.starts_with("  failing    deaf: ");
    within(HANGS, "who fails", process.line(failing)).await;
    let answer = reqwest::get(format!("{address}/readyz")).await.unwrap();
    assert_eq!(answer.status().as_u16(), 200);
    assert!(answer.text().await.unwrap().contains("degraded"));
}

#[tokio::test]
async fn what_the_gateway_wrote_can_be_read_and_followed() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    let (ended, output) = run(rig.home.path(), &["logs"]).await;
    assert_eq!(ended.code(), Some(1), "{output}");
    assert!(output.contains("there is no log"), "{output}");
    rig.start().await;
    rig.end().await;
    let path = rig.home.file("logs/gateway.log");
    let mode = std::os::unix::fs::PermissionsExt::mode(&path.metadata().unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let written = std::fs::read_to_string(&path).unwrap();
    for line in written.lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        assert!(record["timestamp"].is_string() && record["fields"]["message"].is_string());
    }

    let (ended, output) = run(rig.home.path(), &["logs"]).await;
    assert!(ended.success(), "{output}");
    for phase in ["configuration", "store", "model", "connections"] {
        let told = format!("INFO starting phase={phase} ms=");
        assert!(output.contains(&told), "{phase}: {output}");
    }
    assert!(output.contains(" INFO started phases=") && !output.contains('{'), "{output}");
    let (_, output) = run(rig.home.path(), &["logs", "-n", "2", "--json"]).await;
    let last: Vec<_> = written.lines().rev().take(2).collect();
    assert_eq!(output.lines().rev().collect::<Vec<_>>(), last);
    let (_, output) = run(rig.home.path(), &["logs", "--level", "error"]).await;
    assert!(!output.contains("INFO"), "{output}");
    let (ended, output) = run(rig.home.path(), &["logs", "--since", "soon"]).await;
    assert_eq!(ended.code(), Some(2), "{output}");

    let follow = Launch::new(binary()).arguments(&["logs", "--follow", "-n", "0"]);
    let following = follow.start(rig.home.path()).unwrap();
    rig.start().await;
    within(HANGS, "a line", following.line(|line| line.contains("INFO started phases="))).await;
    // Another file begins while somebody reads.
    std::fs::rename(&path, rig.home.file("logs/gateway.log.1")).unwrap();
    rig.end().await;
    within(HANGS, "its end", following.line(|line| line.contains("ending; once more"))).await;
    rig.start().await;
    let twice = async {
        while following.output().matches("INFO started phases=").count() < 2 {
            SystemClock.sleep(Duration::from_millis(20)).await;
        }
    };
    within(HANGS, "the next file", twice).await;
    assert!(rig.home.file("logs/gateway.log.1").exists() && path.exists());
}

#[tokio::test]
async fn a_watched_status_is_shown_again_when_it_changes() {
    let mut rig = Rig::new(VendorSettings::default(), &[]).await;
    rig.start().await;
    let watch = Launch::new(binary()).arguments(&["status", "--watch", "--json"]);
    let watching = watch.start(rig.home.path()).unwrap();
    let known = |line: &str| line.contains(r#""sessions":0"#);
    within(HANGS, "the first line", watching.line(known)).await;
    rig.vendor.say("ann", "hello");
    let changed = |line: &str| line.contains(r#""sessions":1"#);
    within(HANGS, "a change", watching.line(changed)).await;
    rig.end().await;
    let gone = |line: &str| line.contains("no gateway is running");
    within(HANGS, "the end", watching.line(gone)).await;
    rig.start().await;
    let pid = format!(r#""pid":{}"#, rig.process().pid());
    within(HANGS, "the next one", watching.line(move |line| line.contains(&pid))).await;
}

#[tokio::test]
async fn a_service_manager_is_told_when_it_is_ready_alive_and_ending() {
    let (home, managers) = (Home::empty().unwrap(), Home::empty().unwrap());
    let path = managers.file("notify.sock");
    let socket = UnixDatagram::bind(&path).unwrap();
    let heard = async |what: &str| {
        let hearing = async {
            let mut buffer = [0; 4096];
            loop {
                let bytes = socket.recv(&mut buffer).await.unwrap();
                let told = String::from_utf8_lossy(&buffer[..bytes]).into_owned();
                if told.lines().any(|line| line == what) {
                    return told;
                }
            }
        };
        within(HANGS, what.to_owned(), hearing).await
    };
    let launch = Launch::new(binary())
        .environment("NOTIFY_SOCKET", path.to_str().unwrap())
        .environment("WATCHDOG_USEC", "300000");
    let mut process = launch.start(home.path()).unwrap();
    let ready = heard("READY=1").await;
    assert!(ready.contains("STATUS=answers with"), "{ready}");
    within(HANGS, "ready", process.ready()).await.unwrap();
    for _ in 0..3 {
        heard("WATCHDOG=1").await;
    }
    process.terminate().unwrap();
    let stopping = heard("STOPPING=1").await;
    assert!(stopping.contains("STATUS=SIGTERM from process"), "{stopping}");
    assert!(process.ended().await.unwrap().success());
}

#[tokio::test]
async fn a_service_is_installed_shown_and_removed() {
    let home = Home::empty().unwrap();
    let tools = home.file("tools");
    std::fs::create_dir(&tools).unwrap();
    let fake = tools.join("systemctl");
    std::fs::write(&fake, "#!/bin/sh\necho \"$@\" >> \"$HOME/called\"\necho ActiveState=active\n")
        .unwrap();
    std::fs::set_permissions(&fake, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", tools.display());
    let service = async |arguments: &[&str]| {
        let arguments: Vec<&str> = ["service"].iter().chain(arguments).copied().collect();
        let launch = Launch::new(binary()).arguments(&arguments).environment("PATH", &path);
        let mut process = launch.start(home.path()).unwrap();
        let ended = within(HANGS, arguments.join(" "), process.ended()).await.unwrap();
        (ended.code(), process.drained().await)
    };
    let unit = home.file(".config/systemd/user/talaria.service");
    let (code, printed) = service(&["install", "--print"]).await;
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("Type=notify") && !unit.exists(), "{printed}");
    let (code, output) = service(&["status"]).await;
    assert_eq!(code, Some(1), "{output}");
    assert!(output.contains("talaria service install"), "{output}");

    let (code, output) = service(&["install"]).await;
    assert_eq!(code, Some(0), "{output}");
    let written = std::fs::read_to_string(&unit).unwrap();
    assert!(written.contains("TimeoutStopSec=230"), "{written}");
    let called = std::fs::read_to_string(home.file("called")).unwrap();
    assert_eq!(
        called,
        "--user daemon-reload\n--user enable talaria.service\n--user restart talaria.service\n"
    );
    let (code, output) = service(&["status"]).await;
    assert_eq!(code, Some(0), "{output}");
    assert!(output.contains("ActiveState=active") && !output.contains("differently"), "{output}");
    home.write("config.yaml", "agent: {restart_drain_timeout: 600}\n").unwrap();
    let (_, output) = service(&["status"]).await;
    assert!(output.contains("differently"), "{output}");
    let (code, output) = service(&["uninstall"]).await;
    assert_eq!(code, Some(0), "{output}");
    assert!(!unit.exists());

    let (code, output) = service(&["install", "--name", "a/b"]).await;
    assert_eq!(code, Some(2), "{output}");
    let (code, output) = service(&["install", "--system", "--print"]).await;
    assert_eq!(code, Some(2), "{output}");
    assert!(output.contains("--run-as"), "{output}");
    home.write("config.yaml", "agent: {max_steps: many}\n").unwrap();
    let (code, output) = service(&["install"]).await;
    assert_eq!(code, Some(2), "a service that cannot start is not installed: {output}");
}

#[tokio::test]
async fn whoever_runs_services_is_told_how_to_be_found_and_no_secret() {
    let home = Home::empty().unwrap();
    let tools = home.file("tools");
    std::fs::create_dir(&tools).unwrap();
    let fake = tools.join("systemctl");
    std::fs::write(&fake, "#!/bin/sh\nenv >> \"$HOME/told\"\n").unwrap();
    std::fs::set_permissions(&fake, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", tools.display());
    let found_by = [
        ("PATH", path.as_str()),
        ("XDG_RUNTIME_DIR", "/run/user/4321"),
        ("DBUS_SESSION_BUS_ADDRESS", "unix:path=/run/user/4321/bus"),
    ];
    let launch = Launch::new(binary())
        .arguments(&["service", "install"])
        .environment("OPENAI_API_KEY", "sk-canary");
    let launch =
        found_by.iter().fold(launch, |launch, (name, value)| launch.environment(name, value));
    let mut process = launch.start(home.path()).unwrap();
    let ended = within(HANGS, "the service", process.ended()).await.unwrap();
    assert!(ended.success(), "{}", process.drained().await);
    let told = std::fs::read_to_string(home.file("told")).unwrap();
    for (name, value) in found_by {
        assert!(told.lines().any(|line| line == format!("{name}={value}")), "{told}");
    }
    assert!(told.lines().any(|line| line.starts_with("HOME=")), "{told}");
    assert!(!told.contains("canary") && !told.contains("TALARIA"), "{told}");
}

#[tokio::test]
async fn a_service_of_the_machine_runs_as_whoever_its_home_belongs_to() {
    let home = Home::empty().unwrap();
    let printed = async |home: &Path, user: &str| {
        run(home, &["service", "install", "--system", "--print", "--run-as", user]).await
    };
    let own = nix::unistd::geteuid().to_string();
    // One that is not there yet is made by the service.
    for place in [home.path().to_owned(), home.file("new/home")] {
        let (ended, output) = printed(&place, &own).await;
        assert!(ended.success() && output.contains(&format!("User={own}\n")), "{output}");
        let (ended, output) = printed(&place, "54321").await;
        assert_eq!(ended.code(), Some(2), "{output}");
        assert!(output.contains("does not belong to 54321"), "{output}");
        assert!(output.contains("TALARIA_HOME=~54321/.talaria"), "{output}");
    }
    let (ended, output) = printed(home.path(), "no such user").await;
    assert_eq!(ended.code(), Some(2), "{output}");
}
