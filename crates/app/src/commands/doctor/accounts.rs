//! The accounts: how they are doing where a gateway runs, and what their platforms say of them.

use std::sync::Arc;
use std::time::Duration;

use talaria_admin::api::{Account, Status};
use talaria_clock::{Clock, SystemClock};
use talaria_model::AccountId;
use talaria_platform::{ConnectError, Identity};

use super::{Finding, Patient};
use crate::homes::Homes;

/// How long a platform may take to say who we are.
const PATIENCE: Duration = Duration::from_secs(15);

pub(super) async fn look(patient: &Patient<'_>, offline: bool) -> Vec<Finding> {
    let mut findings: Vec<Finding> = match patient.status {
        Some(status) => running(status),
        None if offline => Vec::new(),
        None => ask(patient).await,
    };
    findings.extend(paused(patient));
    findings.extend(homes(patient));
    findings
}

/// How they are doing, by the gateway that runs.
fn running(status: &Status) -> Vec<Finding> {
    let mut findings: Vec<Finding> = status.accounts.iter().map(of).collect();
    findings.extend(status.accounts.iter().filter_map(|account| {
        let why = account.mute.as_ref()?;
        let text = format!("nothing that is said on {} gets through: {why}", account.name);
        Some(Finding::problem("accounts", text))
    }));
    if status.quarantined > 0 {
        let text =
            format!("{} messages were set aside because they kept failing", status.quarantined);
        findings.push(Finding::warning("messages", text).hint("the log says why"));
    }
    if status.failed > 0 {
        let text = format!("{} messages could not be delivered", status.failed);
        findings.push(Finding::warning("messages", text).hint("`talaria status` lists them"));
    }
    findings
}

fn of(account: &Account) -> Finding {
    let Account { name, state, problem, crashes, .. } = account;
    let problem = problem.as_deref().unwrap_or("no reason given");
    match state.as_str() {
        "connected" if *crashes == 0 => {
            Finding::good("accounts", format_args!("{name} is connected"))
        }
        "connected" => {
            let text = format!("{name} is connected, and broke down {crashes} times");
            Finding::warning("accounts", text).hint("this is a bug: the log says where")
        }
        "paused" => Finding::warning("accounts", format_args!("{name} is paused"))
            .hint(format_args!("`talaria platforms resume {name}` connects it")),
        "unproven" => {
            let text = format!("{name} is connected, and not known to be heard: {problem}");
            Finding::problem("accounts", text)
                .hint("write something there; if it is not answered, look whether the platform is told to send events, and whether \
                       its requests reach http.listen if it sends any")
        }
        "connecting" => Finding::warning("accounts", format_args!("{name} is being connected")),
        state => Finding::problem("accounts", format_args!("{name} is {state}: {problem}"))
            .hint(format_args!("`talaria platforms resume {name}` tries it at once")),
    }
}

/// What the platforms say of accounts that no gateway is connected with.
async fn ask(patient: &Patient<'_>) -> Vec<Finding> {
    let Some(loaded) = patient.loaded else { return Vec::new() };
    let asked = loaded.config().accounts.iter().filter_map(|(id, settings)| {
        let account = settings.account.clone()?;
        (settings.platform.identity == Identity::Anyone).then_some((id, account))
    });
    let asked = asked.map(|(id, account)| async move {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let checked = tokio::select! {
            checked = account.check(clock.clone()) => checked,
            () = clock.sleep(PATIENCE) => Err(ConnectError::Unreachable {
                reason: format!("no answer for {} s", PATIENCE.as_secs()),
            }),
        };
        told(id, account.spec.label, checked)
    });
    futures::future::join_all(asked).await.into_iter().flatten().collect()
}

fn told(
    id: &AccountId,
    label: &str,
    checked: Result<talaria_platform::Checked, ConnectError>,
) -> Vec<Finding> {
    match checked {
        Ok(checked) => {
            let name = checked.name.map_or(String::new(), |name| format!(" as {name}"));
            let good = Finding::good("accounts", format_args!("{label} knows {id}{name}"));
            let odd = checked
                .remarks
                .into_iter()
                .map(|remark| Finding::warning("accounts", format_args!("{id}: {remark}")));
            std::iter::once(good).chain(odd).collect()
        }
        Err(error @ ConnectError::Unreachable { .. }) => vec![
            Finding::problem("accounts", format_args!("{id}: {label} {error}"))
                .hint("check the network, a proxy, and the address of its server if one is set"),
        ],
        Err(ConnectError::Refused { problem, hint } | ConnectError::Fatal { problem, hint }) => {
            vec![Finding::problem("accounts", format_args!("{id}: {problem}")).hint(hint)]
        }
    }
}

fn paused(patient: &Patient<'_>) -> Vec<Finding> {
    if patient.status.is_some() {
        return Vec::new();
    }
    let kept = match crate::paused::PausedAccounts::open(patient.home) {
        Ok(kept) => kept.all(),
        Err(halt) => return vec![Finding::problem("accounts", halt.explained())],
    };
    let finding = |id: AccountId| {
        Finding::warning("accounts", format_args!("{id} is paused"))
            .hint(format_args!("`talaria platforms resume {id}` lets it be connected"))
    };
    kept.into_iter().map(finding).collect()
}

/// Whether the operator can be told when an account fails.
fn homes(patient: &Patient<'_>) -> Option<Finding> {
    let config = patient.loaded?.config();
    let is_others = |id: &&AccountId| {
        let settings = &config.accounts[*id];
        settings.account.is_some() && settings.platform.identity == Identity::Anyone
    };
    let watched = config.accounts.keys().filter(is_others).count();
    let homes = match Homes::open(patient.home.homes()) {
        Ok(homes) => homes.all(),
        Err(error) => {
            let path = patient.home.homes();
            let text = format!("{} cannot be read: {error}", path.display());
            let hint = "correct it, or remove it and say /sethome again";
            return Some(Finding::problem("home", text).hint(hint));
        }
    };
    let known = homes.iter().filter(|at| config.accounts.contains_key(&at.account)).count();
    (watched > 0 && known == 0).then(|| {
        Finding::warning("accounts", "nobody is told when an account fails: no chat is your home")
            .hint("say /sethome in a chat of yours, best on two accounts")
    })
}
