//! One connection of an account, from its beginning until it breaks or somebody wants another.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, StreamExt};
use talaria_model::ChatKind;
use talaria_platform::{
    Arrival, Arrivals, ConnectError, Cursor, Incoming, Link, LinkError, Ports, Proof, Pulse,
};
use tokio::sync::watch;

use super::{AccountState, ConnectedAccount};
use crate::archive::AccountArchive;
use crate::desk::desk_for;
use crate::shared::Shared;
use crate::supervise::{self, Orders, Over};
use crate::{discretion, intake, menu};

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Makes a connection.
pub(crate) async fn connect(
    shared: &Arc<Shared>,
    account: &ConnectedAccount,
) -> Result<Link, ConnectError> {
    tokio::select! {
        biased;
        link = begin(shared, account) => link,
        () = shared.clock.sleep(CONNECT_TIMEOUT) => {
            Err(ConnectError::Unreachable { reason: "connecting took too long".into() })
        }
    }
}

async fn begin(shared: &Arc<Shared>, account: &ConnectedAccount) -> Result<Link, ConnectError> {
    let plan = account.plan();
    let cursor = shared
        .store
        .cursor(&plan.id)
        .await
        .map_err(|error| ConnectError::Unreachable { reason: error.to_string() })?;
    let ports = Ports {
        account: plan.id.clone(),
        clock: shared.clock.clone(),
        files: shared.files.clone(),
        archive: Arc::new(AccountArchive { store: shared.store.clone(), account: plan.id.clone() }),
        desk: desk_for(shared, &plan),
        hosts: shared.hosts.clone(),
        menu: menu::menu(
            plan.rules.get(&ChatKind::Dm).unwrap_or(&shared.rules),
            plan.access.surface,
        ),
        folder: plan.folder.clone(),
        cursor: cursor.map(Cursor),
        kept: plan.account.kept.clone(),
    };
    plan.account.connect(ports).await.map_err(|error| discretion::told(shared, error))
}

/// Listens for as long as the connection lasts and nobody wants it to end.
pub(crate) async fn carry(
    shared: &Arc<Shared>,
    account: &Arc<ConnectedAccount>,
    link: Link,
    orders: &mut watch::Receiver<Orders>,
) -> Over {
    let Link { incoming, outgoing, library, pulse } = link;
    // A complaint about the connection before this one.
    let _ = account.suspended.notified().now_or_never();
    account.reads_from(library);
    account.speaks_through(Some(outgoing));
    account.becomes(AccountState::Connected, shared.clock.now());
    supervise::connects(shared, account);
    account.was_tried();
    match incoming {
        Incoming::Stream(arrivals) => {
            listen(shared, account, arrivals, (Redelivery::Reconnect, pulse), orders).await
        }
        Incoming::Served { on, routes, arrivals } => {
            shared.routes.mount(on, &account.id, routes);
            listen(shared, account, arrivals, (Redelivery::Sender, pulse), orders).await
        }
        Incoming::Nothing => {
            supervise::present(shared, account).await;
            tokio::select! {
                biased;
                _ = orders.changed() => Over::Told,
                () = account.suspended.notified() => unaccepted(),
            }
        }
    }
}

/// Who delivers a batch again that could not be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Redelivery {
    /// Whoever sent it: the dropped acknowledgement tells them.
    Sender,
    /// The platform, when it is connected again at the last stored cursor.
    Reconnect,
}

async fn listen(
    shared: &Arc<Shared>,
    account: &Arc<ConnectedAccount>,
    mut arrivals: Arrivals,
    (redelivery, pulse): (Redelivery, Pulse),
    orders: &mut watch::Receiver<Orders>,
) -> Over {
    if pulse == Pulse::Unknown {
        supervise::present(shared, account).await;
    }
    let mut doubt = pin!(supervise::doubt(shared, account));
    // For how long the platform has given no sign, without the time that we took to store something.
    let mut quiet = Duration::ZERO;
    loop {
        let since = shared.clock.mark();
        let silence = async {
            match pulse {
                Pulse::Within(longest) => {
                    shared.clock.sleep(longest.saturating_sub(quiet)).await;
                    longest
                }
                Pulse::Unknown => std::future::pending().await,
            }
        };
        let arrival = tokio::select! {
            biased;
            () = shared.intake_closed.cancelled() => std::future::pending().await,
            () = account.suspended.notified() => return unaccepted(),
            _ = orders.changed() => return Over::Told,
            arrival = arrivals.next() => arrival,
            never = &mut doubt => match never {},
            longest = silence => {
                let reason = format!("no sign of life for {} s", longest.as_secs());
                return Over::Lost(LinkError::Deaf { reason, until: Proof::Life, since: None });
            }
        };
        let arrival = match arrival {
            Some(Ok(arrival)) => arrival,
            Some(Err(error)) => return Over::Lost(discretion::told(shared, error)),
            None => return Over::lost("the platform ended the connection"),
        };
        let proof = arrival.proves();
        if let Some(proof) = proof {
            account.hears(proof, shared.clock.as_ref());
            quiet = Duration::ZERO;
        } else {
            quiet += shared.clock.mark().since(since);
        }
        if let Arrival::Batch(batch) | Arrival::Found(batch) = arrival
            && let Err(error) = intake::admit(shared, account, batch).await
        {
            tracing::warn!(account = %account.id, %error, "cannot take anything in");
            if redelivery == Redelivery::Reconnect {
                return Over::lost(error);
            }
        }
        if let Some(proof) = proof {
            supervise::hears(shared, account, proof).await;
        }
    }
}

fn unaccepted() -> Over {
    Over::Lost(LinkError::Unauthorized { reason: "not accepted any more".into() })
}
