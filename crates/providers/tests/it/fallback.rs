//! Several providers as one.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::{BoxFuture, ready};
use futures::{FutureExt, StreamExt, stream};
use talaria_agent::{Delta, Deltas, FinishReason, Prompt, Provider, ProviderError, Sight};
use talaria_clock::{Clock, FakeClock};
use talaria_model::{Cost, Timestamp, Usage};
use talaria_providers::{Fallback, Http, OpenAi, Settings};

use crate::prompt::{Outcome, collect, hello};
use crate::server::{Answer, Server};

/// What a provider does with one request: it says something, then succeeds or fails.
type Take = (&'static str, Result<(), ProviderError>);

struct Scripted {
    name: &'static str,
    takes: Mutex<Vec<Take>>,
    asked: AtomicUsize,
}

/// A provider that does this in turn, and the last thing for ever.
fn scripted(name: &'static str, takes: impl Into<Vec<Take>>) -> Arc<Scripted> {
    let mut takes = takes.into();
    takes.reverse();
    Arc::new(Scripted { name, takes: Mutex::new(takes), asked: AtomicUsize::new(0) })
}

impl Scripted {
    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl Provider for Scripted {
    fn complete(&self, _: Prompt) -> Deltas {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let mut takes = self.takes.lock().unwrap();
        let (text, end) = if takes.len() > 1 { takes.pop().unwrap() } else { takes[0].clone() };
        let said = (!text.is_empty()).then(|| Ok(Delta::Text(text.to_owned())));
        let end = end.map(|()| Delta::Finished {
            reason: FinishReason::Stop,
            calls: Vec::new(),
            reasoning: None,
            usage: Usage::default(),
            cost: Cost::FREE,
        });
        stream::iter(said.into_iter().chain([end])).boxed()
    }

    fn name(&self) -> &str {
        self.name
    }

    fn sight(&self) -> Sight {
        Sight::TextOnly
    }

    fn context_window(&self) -> BoxFuture<'_, Option<u64>> {
        ready(Some(1000)).boxed()
    }

    fn unfinished(&self, _: Usage) -> Cost {
        Cost::FREE
    }
}

fn clock() -> Arc<FakeClock> {
    Arc::new(FakeClock::starting(Timestamp::from_millis(1_794_735_000_000)))
}

fn fallback(providers: &[&Arc<Scripted>]) -> Fallback {
    let mut providers = providers.iter().map(|provider| Arc::clone(provider) as Arc<dyn Provider>);
    let first = providers.next().unwrap();
    Fallback::new(first, providers, clock())
}

async fn ask(providers: &[&Arc<Scripted>]) -> Outcome {
    collect(fallback(providers).complete(hello())).await
}

fn unavailable(detail: &str) -> ProviderError {
    ProviderError::Unavailable { detail: detail.to_owned() }
}

fn limited(seconds: u64) -> ProviderError {
    ProviderError::RateLimited { after: Some(Duration::from_secs(seconds)) }
}

const REJECTED: fn() -> ProviderError = || ProviderError::Rejected { detail: "no".to_owned() };

#[tokio::test(start_paused = true)]
async fn the_first_one_answers_if_it_can() {
    let (one, two) = (scripted("one/m", [("1", Ok(()))]), scripted("two/m", [("2", Ok(()))]));
    assert_eq!(ask(&[&one, &two]).await.text, "1");
    assert_eq!(two.asked(), 0);
}

#[tokio::test(start_paused = true)]
async fn trouble_is_tried_again_a_bounded_number_of_times() {
    let one = scripted(
        "one/m",
        [("", Err(unavailable("x"))), ("", Err(unavailable("x"))), ("1", Ok(()))],
    );
    assert_eq!(ask(&[&one]).await.text, "1");
    let never = scripted("one/m", [("", Err(unavailable("x")))]);
    assert_eq!(ask(&[&never]).await.error(), &unavailable("x"));
    assert_eq!(never.asked(), 4);
    let stalls = scripted("one/m", [("", Err(ProviderError::Stalled { waited: Duration::ZERO }))]);
    ask(&[&stalls]).await.error();
    assert_eq!(stalls.asked(), 3);
    let silent =
        scripted("one/m", [("", Err(ProviderError::NoFirstToken { waited: Duration::ZERO }))]);
    ask(&[&silent]).await.error();
    assert_eq!(silent.asked(), 2);
}

#[tokio::test(start_paused = true)]
async fn waits_grow_and_stay_bounded() {
    let one = scripted("one/m", [("", Err(unavailable("x")))]);
    let (clock, began) = (clock(), clock().now());
    ask(&[&one]).await;
    // At most 0.5 s, 1 s and 2 s.
    assert!(
        clock.now().since(began) <= Duration::from_millis(3_510),
        "{:?}",
        clock.now().since(began)
    );
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_the_provider_asks_for_is_kept() {
    let one = scripted("one/m", [("", Err(limited(20))), ("1", Ok(()))]);
    let (clock, began) = (clock(), clock().now());
    assert_eq!(ask(&[&one]).await.text, "1");
    let waited = clock.now().since(began);
    assert!(waited >= Duration::from_secs(20), "{waited:?}");
    assert!(waited <= Duration::from_millis(20_510), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_is_too_long_is_spent_with_the_next_one() {
    let one = scripted("one/m", [("", Err(limited(61)))]);
    let two = scripted("two/m", [("2", Ok(()))]);
    let (clock, began) = (clock(), clock().now());
    assert_eq!(ask(&[&one, &two]).await.text, "2");
    assert_eq!((one.asked(), clock.now().since(began)), (1, Duration::ZERO));
    assert_eq!(ask(&[&one]).await.error(), &limited(61));
}

#[tokio::test(start_paused = true)]
async fn what_another_provider_may_do_is_given_to_it_at_once() {
    let nos = [
        REJECTED(),
        ProviderError::Unauthorized { detail: "no".to_owned() },
        ProviderError::NoCredit { detail: "no".to_owned() },
    ];
    for no in nos {
        let one = scripted("one/m", [("", Err(no))]);
        let two = scripted("two/m", [("2", Ok(()))]);
        assert_eq!(ask(&[&one, &two]).await.text, "2");
        assert_eq!(one.asked(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_has_to_change_is_given_to_nobody_else() {
    let one = scripted("one/m", [("", Err(ProviderError::TooLong))]);
    let two = scripted("two/m", [("2", Ok(()))]);
    assert_eq!(ask(&[&one, &two]).await.error(), &ProviderError::TooLong);
    assert_eq!(two.asked(), 0);
}

#[tokio::test(start_paused = true)]
async fn when_all_fail_the_first_ones_reason_is_told() {
    let one = scripted("one/m", [("", Err(unavailable("early"))), ("", Err(limited(1)))]);
    let two = scripted("two/m", [("", Err(REJECTED()))]);
    assert_eq!(ask(&[&one, &two]).await.error(), &limited(1));
    assert_eq!((one.asked(), two.asked()), (4, 1));
}

#[tokio::test(start_paused = true)]
async fn what_was_said_before_a_failure_is_to_be_forgotten() {
    let one = scripted("one/m", [("Hal", Err(ProviderError::Cut)), ("Hello", Ok(()))]);
    let outcome = ask(&[&one]).await;
    assert_eq!((outcome.text.as_str(), outcome.restarts), ("Hello", 1));
    let one = scripted("one/m", [("Hal", Err(ProviderError::Cut))]);
    let two = scripted("two/m", [("Hello", Ok(()))]);
    let outcome = ask(&[&one, &two]).await;
    assert_eq!((outcome.text.as_str(), outcome.restarts), ("Hello", 3));
    let one = scripted("one/m", [("", Err(ProviderError::Cut)), ("Hello", Ok(()))]);
    assert_eq!(ask(&[&one]).await.restarts, 0);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_just_stops_was_cut() {
    struct Stops;
    impl Provider for Stops {
        fn complete(&self, _: Prompt) -> Deltas {
            stream::iter([Ok(Delta::Text("Hal".to_owned()))]).boxed()
        }
        fn name(&self) -> &str {
            "stops/m"
        }
        fn sight(&self) -> Sight {
            Sight::Pictures
        }
        fn context_window(&self) -> BoxFuture<'_, Option<u64>> {
            ready(None).boxed()
        }
        fn unfinished(&self, _: Usage) -> Cost {
            Cost::UNKNOWN
        }
    }
    let stops = Fallback::new(Arc::new(Stops), [], clock());
    let outcome = collect(stops.complete(hello())).await;
    assert_eq!(outcome.error(), &ProviderError::Cut);
    // Whoever may have been asked may have cost something.
    let free = || scripted("free/m", [("Hello", Ok(()))]);
    assert_eq!(fallback(&[&free(), &free()]).unfinished(Usage::default()), Cost::FREE);
    let chain = Fallback::new(free(), [Arc::new(Stops) as _], clock());
    assert_eq!(chain.unfinished(Usage::default()), Cost::UNKNOWN);
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_keeps_failing_is_left_alone_for_a_while() {
    let one = scripted("one/m", [("", Err(unavailable("down")))]);
    let two = scripted("two/m", [("2", Ok(()))]);
    let both = fallback(&[&one, &two]);
    collect(both.complete(hello())).await.finished();
    assert_eq!(one.asked(), 4);
    // The fifth failure opens the breaker, so there is no sixth.
    collect(both.complete(hello())).await.finished();
    assert_eq!(one.asked(), 5);
    collect(both.complete(hello())).await.finished();
    assert_eq!(one.asked(), 5);
    tokio::time::advance(Duration::from_secs(31)).await;
    collect(both.complete(hello())).await.finished();
    collect(both.complete(hello())).await.finished();
    assert_eq!(one.asked(), 6);
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_is_back_is_asked_first_again() {
    let down: Take = ("", Err(unavailable("down")));
    let one = scripted(
        "one/m",
        [down.clone(), down.clone(), down.clone(), down.clone(), down, ("1", Ok(()))],
    );
    let two = scripted("two/m", [("2", Ok(()))]);
    let both = fallback(&[&one, &two]);
    collect(both.complete(hello())).await;
    assert_eq!(collect(both.complete(hello())).await.text, "2");
    tokio::time::advance(Duration::from_secs(31)).await;
    assert_eq!(collect(both.complete(hello())).await.text, "1");
    assert_eq!(collect(both.complete(hello())).await.text, "1");
}

#[tokio::test(start_paused = true)]
async fn an_only_provider_is_never_left_alone() {
    let one = scripted("one/m", [("", Err(unavailable("down")))]);
    let only = fallback(&[&one]);
    for asked in [4, 8, 12] {
        assert_eq!(collect(only.complete(hello())).await.error(), &unavailable("down"));
        assert_eq!(one.asked(), asked);
    }
}

#[tokio::test(start_paused = true)]
async fn when_all_are_left_alone_the_first_one_is_asked_once() {
    let one = scripted("one/m", [("", Err(unavailable("one")))]);
    let two = scripted("two/m", [("", Err(unavailable("two")))]);
    let both = fallback(&[&one, &two]);
    for _ in 0..2 {
        assert_eq!(collect(both.complete(hello())).await.error(), &unavailable("one"));
    }
    let before = (one.asked(), two.asked());
    assert_eq!(before, (5, 5));
    assert_eq!(collect(both.complete(hello())).await.error(), &unavailable("one"));
    assert_eq!((one.asked(), two.asked()), (6, 5));
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_with_a_request_is_not_held_against_the_provider() {
    let one = scripted("one/m", [("", Err(REJECTED()))]);
    let two = scripted("two/m", [("2", Ok(()))]);
    let both = fallback(&[&one, &two]);
    for _ in 0..8 {
        collect(both.complete(hello())).await.finished();
    }
    assert_eq!(one.asked(), 8);
}

#[tokio::test]
async fn it_holds_over_real_connections_too() {
    let chunk = |text: &str| format!(r#"{{"choices":[{{"delta":{{"content":"{text}"}}}}]}}"#);
    let stop = r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#;
    let one = Server::start([
        Answer::events(&[&chunk("Hal")]).breaks(),
        Answer::status(401, r#"{"error":{"message":"expired"}}"#),
    ]);
    let two = Server::start([Answer::events(&[&chunk("Hello"), stop, "[DONE]"])]);
    let open = |name: &str, server: &Server| {
        let settings = Settings {
            provider: name.to_owned(),
            model: "m".to_owned(),
            base_url: server.url(),
            ..Settings::default()
        };
        let provider = OpenAi::new(settings, Http::default(), clock()).unwrap();
        Arc::new(provider) as Arc<dyn Provider>
    };
    let both = Fallback::new(open("one", &one), [open("two", &two)], clock());
    assert_eq!((both.name(), both.sight()), ("one/m", Sight::TextOnly));
    let outcome = collect(both.complete(hello())).await;
    assert_eq!((outcome.text.as_str(), outcome.restarts), ("Hello", 1));
}
