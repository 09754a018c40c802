//! Tells the operator when nothing that is said on an account gets through, and when it does again. The
//! account may be heard all the while.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use crate::accounts::{ConnectedAccount, Mute};
use crate::alarm;
use crate::shared::Shared;
use crate::supervise::tell;

/// How long nothing gets through before somebody is told. Only a try that fails after this time is taken for
/// proof.
const TELL: Duration = Duration::from_secs(300);

/// Watches for as long as it is polled.
pub(crate) async fn watch(shared: &Arc<Shared>, account: &Arc<ConnectedAccount>) -> Infallible {
    let mut mute = account.mute.subscribe();
    let since = |mute: &Mute| shared.clock.mark().since(mute.begun);
    let id = &account.id;
    loop {
        // Who was told of it within the hour is told with the first try that fails behind that.
        let is_news = || account.care.is_news(&format!("{id} mute"), shared.clock.mark());
        let for_long = |mute: &Option<Mute>| {
            mute.as_ref().is_some_and(|mute| since(mute) >= TELL) && is_news()
        };
        let found = mute.wait_for(for_long).await.ok().and_then(|found| found.clone());
        let found = found.expect("the account that says so is held here");
        let why = talaria_render::literal(&found.why);
        tracing::error!(account = %id, why = found.why, "nothing gets through");
        let text = format!(
            "`{id}` hears, but nothing that I say there has got through for {} s ({why}). I keep \
             trying.",
            since(&found).as_secs(),
        );
        alarm::tell(shared, id, text).await;
        let _ = mute.wait_for(Option::is_none).await;
        let seconds = since(&found).as_secs();
        tracing::info!(account = %id, seconds, "what is said gets through again");
        let text = format!("`{id}`: what I say gets through again, after {seconds} s.");
        tell(shared, account, &format!("{id} not mute"), text).await;
    }
}
