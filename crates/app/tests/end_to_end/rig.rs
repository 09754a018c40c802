//! A gateway between a vendor and a model, and everything a test does to it.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use talaria_clock::{Clock, SystemClock};
use talaria_testkit::{
    Clutter, FakeLlm, GatewayProcess, Home, Launch, Truth, Vendor, VendorSettings, within,
};

/// Nothing here takes this long unless it hangs.
pub(crate) const HANGS: Duration = Duration::from_secs(60);

/// The binary under test.
pub(crate) fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_talaria"))
}

/// Runs a command on a home to its end: how it ended, and what it printed.
pub(crate) async fn run(home: &Path, arguments: &[&str]) -> (ExitStatus, String) {
    let mut process = Launch::new(binary()).arguments(arguments).start(home).unwrap();
    let ended = within(HANGS, arguments.join(" "), process.ended()).await.unwrap();
    (ended, process.drained().await)
}

/// Asks a process to end until it has, as somebody does who has no patience left.
pub(crate) async fn insist(process: &mut GatewayProcess) -> ExitStatus {
    let insisting = async {
        loop {
            process.terminate().unwrap();
            tokio::select! {
                ended = process.ended() => break ended.unwrap(),
                () = SystemClock.sleep(Duration::from_millis(100)) => {}
            }
        }
    };
    within(HANGS, "the end of a process that is asked again and again", insisting).await
}

/// A gateway between a vendor and a model.
pub(crate) struct Rig {
    pub(crate) vendor: Vendor,
    pub(crate) llm: FakeLlm,
    pub(crate) home: Home,
    pub(crate) launch: Launch,
    process: Option<GatewayProcess>,
}

impl Rig {
    /// Everything but the gateway, which is not running yet. What is said waits for what is being
    /// answered: every message gets a whole answer, and a test can count them.
    pub(crate) async fn new(settings: VendorSettings, account: &[&str]) -> Self {
        Self::configured(
            settings,
            account,
            "agent: {busy_input_mode: queue, busy_ack_enabled: false}\n",
        )
        .await
    }

    /// The same, as it is installed: what is said during an answer ends it.
    pub(crate) async fn as_installed(settings: VendorSettings, account: &[&str]) -> Self {
        Self::configured(settings, account, "").await
    }

    /// The same, with these sections in its configuration.
    pub(crate) async fn configured(
        settings: VendorSettings,
        account: &[&str],
        sections: &str,
    ) -> Self {
        let vendor = Vendor::open(settings).await.unwrap();
        let llm = FakeLlm::open().await.unwrap();
        let clutter = Clutter { account, sections };
        let home = Home::new(vendor.address(), &llm.base_url(), clutter).unwrap();
        let launch = Launch::new(binary());
        Self { vendor, llm, home, launch, process: None }
    }

    /// Starts the gateway and waits until it listens to the vendor.
    pub(crate) async fn start(&mut self) {
        let known = self.vendor.read(Truth::connections);
        let mut process = self.launch.start(self.home.path()).unwrap();
        within(HANGS, "the ready line", process.ready()).await.unwrap();
        self.process = Some(process);
        self.until("the gateway to connect", |truth| truth.connections() > known).await;
    }

    pub(crate) fn process(&mut self) -> &mut GatewayProcess {
        self.process.as_mut().expect("the gateway was started")
    }

    /// Another process has taken the gateway's place.
    pub(crate) fn succeed(&mut self, next: GatewayProcess) {
        self.process = Some(next);
    }

    pub(crate) async fn kill(&mut self) {
        self.process.take().expect("the gateway was started").kill().await.unwrap();
    }

    /// Asks the gateway to end and waits until it has, in good order.
    pub(crate) async fn end(&mut self) {
        let mut process = self.process.take().expect("the gateway was started");
        process.terminate().unwrap();
        let ended = within(HANGS, "the gateway to end", process.ended()).await.unwrap();
        assert!(ended.success(), "{ended}\n{}", process.drained().await);
    }

    /// Completes once this is true for the vendor.
    pub(crate) async fn until(&self, what: &str, holds: impl FnMut(&Truth) -> bool) {
        let truth = self.vendor.until(holds);
        if tokio::time::timeout(HANGS, truth).await.is_err() {
            let log = self.process.as_ref().map(GatewayProcess::output).unwrap_or_default();
            panic!("in vain: {what}\n{}\n{log}", self.vendor.transcript());
        }
    }

    pub(crate) async fn until_everything_is_answered(&self) {
        self.until("every answer", Truth::is_everything_answered).await;
    }

    /// Says one more thing in every chat and waits for its answer. What is said in a chat arrives in
    /// order, so nothing that was still to come can come after that.
    pub(crate) async fn settle(&self) {
        let chats: BTreeSet<String> =
            self.vendor.read(|truth| truth.chats().map(str::to_owned).collect());
        for chat in &chats {
            self.vendor.say(chat, "and finally");
        }
        self.until_everything_is_answered().await;
        let all = |truth: &Truth| truth.acked() == truth.happened();
        self.until("every acknowledgement", all).await;
    }

    /// Panics with what was seen, unless every promise was kept.
    pub(crate) fn check(&self) {
        let violations = self.vendor.check();
        if !violations.is_empty() {
            let list: Vec<String> = violations.iter().map(ToString::to_string).collect();
            let log = self.process.as_ref().map(GatewayProcess::output).unwrap_or_default();
            panic!("{}\n\n{}\n\n{log}", list.join("\n"), self.vendor.transcript());
        }
    }

    pub(crate) fn marked(&self) -> usize {
        self.vendor.read(Truth::marked)
    }
}
