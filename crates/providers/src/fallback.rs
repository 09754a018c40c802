//! Several providers as one: tries again where that helps, and moves on where it does not.

use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, ready};
use futures::{FutureExt, StreamExt, stream};
use talaria_agent::{Delta, Deltas, Prompt, Provider, ProviderError, Retry, Sight};
use talaria_clock::Clock;
use talaria_model::{Cost, Usage};

use crate::breaker::Breaker;

/// The first wait between two tries is at most this long; each further one may be twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(500);

/// No wait of our own choosing is longer.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// A provider that wants us to wait longer than this has no time for us; the next one may.
const LONGEST_PATIENCE: Duration = Duration::from_secs(60);

/// Asks one provider after the other until one answers.
///
/// Each is tried again as [`ProviderError::retry`] says. Deltas are handed on as they arrive; when a
/// try fails after something was handed on, [`Delta::Restarted`] says to forget it. A provider that
/// failed five times in a row is left alone for thirty seconds, unless no other is there.
pub struct Fallback {
    steps: Arc<[Step]>,
    name: String,
    clock: Arc<dyn Clock>,
}

struct Step {
    provider: Arc<dyn Provider>,
    breaker: Breaker,
}

impl Fallback {
    /// Takes the providers in the order in which they are to be asked. It is known by the first one's
    /// name and context window.
    pub fn new(
        first: Arc<dyn Provider>,
        then: impl IntoIterator<Item = Arc<dyn Provider>>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let name = first.name().to_owned();
        let steps = std::iter::once(first)
            .chain(then)
            .map(|provider| Step { provider, breaker: Breaker::default() })
            .collect();
        Self { steps, name, clock }
    }
}

impl Provider for Fallback {
    fn complete(&self, prompt: Prompt) -> Deltas {
        let attempt = Attempt {
            steps: self.steps.clone(),
            clock: self.clock.clone(),
            prompt,
            at: 0,
            tries: 0,
            wait: None,
            deltas: None,
            spoke: false,
            first: None,
            over: false,
        };
        stream::unfold(attempt, |mut attempt| async move {
            attempt.next().await.map(|delta| (delta, attempt))
        })
        .boxed()
    }

    fn name(&self) -> &str {
        &self.name
    }

    /// The first one's: who steps in without seeing reads that there was a picture.
    fn sight(&self) -> Sight {
        self.steps.first().map_or(Sight::TextOnly, |first| first.provider.sight())
    }

    fn context_window(&self) -> BoxFuture<'_, Option<u64>> {
        match self.steps.first() {
            Some(first) => first.provider.context_window(),
            None => ready(None).boxed(),
        }
    }

    /// Any of them may have been asked, the dearest too.
    fn unfinished(&self, usage: Usage) -> Cost {
        let (mut cost, mut dearest) = (Cost::FREE, 0);
        for step in &*self.steps {
            let each = step.provider.unfinished(usage);
            dearest = dearest.max(each.micros);
            cost += each;
        }
        Cost { micros: dearest, ..cost }
    }
}

/// One completion on its way through the providers.
struct Attempt {
    steps: Arc<[Step]>,
    clock: Arc<dyn Clock>,
    prompt: Prompt,
    /// The provider whose turn it is.
    at: usize,
    /// How often it has failed.
    tries: u32,
    /// How long to wait before it is asked again.
    wait: Option<Duration>,
    /// Its answer.
    deltas: Option<Deltas>,
    /// Whether the caller has heard anything that would have to be forgotten.
    spoke: bool,
    /// Which provider was asked first, and what became of it. That is what the caller is told when
    /// all have failed: it is the one that people chose.
    first: Option<(usize, ProviderError)>,
    over: bool,
}

impl Attempt {
    async fn next(&mut self) -> Option<Result<Delta, ProviderError>> {
        loop {
            if self.over {
                return None;
            }
            let Some(deltas) = &mut self.deltas else {
                if let Some(wait) = self.wait.take() {
                    self.clock.sleep(wait).await;
                }
                if self.ask() {
                    continue;
                }
                return Some(Err(self.give_up()));
            };
            match deltas.next().await {
                Some(Ok(delta)) => {
                    match delta {
                        Delta::Text(_) | Delta::Reasoning(_) => self.spoke = true,
                        Delta::Restarted => self.spoke = false,
                        Delta::Finished { .. } => {
                            self.steps[self.at].breaker.succeeded();
                            self.over = true;
                        }
                    }
                    return Some(Ok(delta));
                }
                failed => {
                    // A stream that just stops was cut.
                    let error = failed.and_then(Result::err).unwrap_or(ProviderError::Cut);
                    if let Some(error) = self.fail(error) {
                        return Some(Err(error));
                    }
                    if std::mem::take(&mut self.spoke) {
                        return Some(Ok(Delta::Restarted));
                    }
                }
            }
        }
    }

    /// Asks the provider whose turn it is, or the next one that may be asked. False when there is
    /// none left.
    fn ask(&mut self) -> bool {
        let now = self.clock.now();
        while let Some(step) = self.steps.get(self.at) {
            if self.steps.len() == 1 || step.breaker.admits(now) {
                break;
            }
            self.move_on();
        }
        // Somebody has to be asked, or there is nothing true to tell.
        if self.at == self.steps.len() && self.first.is_none() {
            self.at = 0;
        }
        let step = self.steps.get(self.at);
        self.deltas = step.map(|step| step.provider.complete(self.prompt.clone()));
        self.deltas.is_some()
    }

    fn move_on(&mut self) {
        self.at += 1;
        self.tries = 0;
        self.wait = None;
    }

    /// Decides what follows a failure. Returns the error that ends everything, if it does.
    fn fail(&mut self, error: ProviderError) -> Option<ProviderError> {
        let step = &self.steps[self.at];
        tracing::debug!(provider = step.provider.name(), %error, "completion failed");
        let now = self.clock.now();
        self.deltas = None;
        self.tries += 1;
        if is_the_providers_fault(&error) {
            step.breaker.failed(now);
        }
        let left_alone = self.steps.len() > 1 && step.breaker.is_open(now);
        match error.retry() {
            Retry::Never => {
                self.over = true;
                return Some(error);
            }
            Retry::Same { times, after }
                if self.tries <= times
                    && after.unwrap_or_default() <= LONGEST_PATIENCE
                    && !left_alone =>
            {
                // Even a wait that the provider asked for gets some jitter: everybody else was told
                // the same moment.
                let jitter = backoff(self.tries);
                self.wait = Some(after.map_or(jitter, |after| after + jitter.min(FIRST_WAIT)));
                self.remember(error);
            }
            Retry::Same { .. } | Retry::Next => {
                self.remember(error);
                self.move_on();
            }
        }
        (self.at == self.steps.len()).then(|| self.give_up())
    }

    fn remember(&mut self, error: ProviderError) {
        match &mut self.first {
            Some((at, told)) if *at == self.at => *told = error,
            Some(_) => {}
            None => self.first = Some((self.at, error)),
        }
    }

    fn give_up(&mut self) -> ProviderError {
        self.over = true;
        let (_, error) = self.first.take().expect("somebody was asked");
        error
    }
}

/// Anything up to the longest wait that so many tries allow, so that callers who failed together do
/// not come back together.
fn backoff(tries: u32) -> Duration {
    let most = FIRST_WAIT.saturating_mul(1 << (tries - 1).min(16)).min(LONGEST_WAIT);
    most.mul_f64(rand::random::<f64>())
}

/// Whether a failure says something about the provider rather than about the request.
fn is_the_providers_fault(error: &ProviderError) -> bool {
    !matches!(
        error,
        ProviderError::TooLong
            | ProviderError::Rejected { .. }
            | ProviderError::TruncatedCall { .. }
    )
}
