//! The listener and the web chat.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use talaria_testkit::vendors::slack;
use talaria_testkit::{Hold, Home, Launch};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::field::{
    Browser, CANARIES, Field, JSON, MISCONFIGURED, Plain, WORK_SECRET, ended, now, signed,
    unchunked,
};
use super::wire::{Ask, send};

/// Every address of the page that is not for strangers.
const PRIVATE: [&str; 8] = [
    "/api/state",
    "/api/conversations",
    "/api/conversations/chat-0001/history",
    "/api/search?q=a",
    "/api/files/abc",
    "/api/events",
    "/api/people",
    "/api/anything",
];

/// ATK-001, ATK-002: what is not configured well does not listen.
pub(super) fn a_wrong_configuration_opens_no_door(field: &Field) -> BoxFuture<'_, Result<()>> {
    async move {
        for (config, listen) in [
            ("", "0.0.0.0:0"),
            ("", "[::]:0"),
            ("http: {listen: '0.0.0.0:0', allowed_hosts: ['*']}\n", "0.0.0.0:0"),
            ("accounts: [\n", "127.0.0.1:0"),
            ("agent: {max_steps: many}\n", "127.0.0.1:0"),
        ] {
            let home = Home::empty()?;
            home.write("config.yaml", config)?;
            let launch = Launch::new(&field.binary).environment("TALARIA_HTTP__LISTEN", listen);
            let (code, output) = ended(launch.start(home.path())?).await?;
            ensure!(code == MISCONFIGURED, "{config:?} on {listen} ended with {code}: {output}");
            ensure!(!output.contains("is ready"), "{config:?} on {listen} listened");
            ensure!(!home.file("state.db").exists(), "{config:?} made a store");
        }
        Ok(())
    }
    .boxed()
}

/// ATK-003, ATK-005: another site's page gets nothing and changes nothing.
pub(super) fn another_site_gets_nothing(field: &Field) -> BoxFuture<'_, Result<()>> {
    async move {
        let browser = field.browser().await?;
        for (name, value) in [
            ("origin", "https://evil.example"),
            ("origin", "null"),
            ("origin", "http://127.0.0.1:1"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
        ] {
            for ask in [
                Ask::get("/api/events"),
                Ask::get("/api/state"),
                Ask::post("/api/logout", "{}").with("content-type", JSON),
                Ask::post(
                    "/api/conversations/chat-0001/messages",
                    "{\"id\":\"m1\",\"text\":\"hi\"}",
                )
                .with("content-type", JSON),
            ] {
                let answer = field.ask(browser.signs(ask.clone()).with(name, value)).await?;
                ensure!(answer.status == 403, "{name}: {value}: {ask:?} got {}", answer.status);
                let allowed = answer.header("access-control-allow-origin");
                ensure!(allowed.is_none(), "{name}: {value} may read: {allowed:?}");
            }
        }
        // A cookie alone changes nothing.
        let forged = Ask::post("/api/logout", "{}").with("content-type", JSON);
        let answer = field.ask(forged.with("cookie", &browser.cookie)).await?;
        ensure!(answer.status == 403, "a cookie alone got {}", answer.status);
        let still = field.ask(browser.signs(Ask::get("/api/state"))).await?;
        ensure!(still.status == 200, "somebody logged us out");
        Ok(())
    }
    .boxed()
}

/// ATK-004: the page takes no address and no credential from a link; it talks to its own origin.
pub(super) fn the_page_talks_to_its_own_origin(field: &Field) -> BoxFuture<'_, Result<()>> {
    async move {
        let page = field.ask(Ask::get("/")).await?;
        ensure!(page.status == 200, "no page: {}", page.status);
        let policy = page.header("content-security-policy").unwrap_or_default();
        ensure!(policy.contains("connect-src 'self'"), "{policy}");
        ensure!(policy.contains("form-action 'self'"), "{policy}");
        for path in ["/?token=x", "/?login=x", "/?access_token=x"] {
            let answer = field.ask(Ask::get(path)).await?;
            ensure!(answer.status == 400, "{path} got {}", answer.status);
        }
        Ok(())
    }
    .boxed()
}

/// ATK-006: a name that is not ours.
pub(super) fn a_name_that_is_not_ours_is_refused(field: &Field) -> BoxFuture<'_, Result<()>> {
    async move {
        for host in [
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "localhost.",
            "2130706433",
            "[::ffff:127.0.0.1]",
            "",
        ] {
            for path in ["/", "/api/state"] {
                let answer = field.ask(Ask::get(path).with("host", host)).await?;
                ensure!(
                    matches!(answer.status, 400 | 421),
                    "{host:?} {path} got {}",
                    answer.status
                );
            }
        }
        let two = Ask::get("/").with("host", "127.0.0.1").with("host", "127.0.0.1");
        let answer = field.ask(two).await?;
        ensure!(matches!(answer.status, 400 | 421), "two hosts got {}", answer.status);
        Ok(())
    }
    .boxed()
}

/// ATK-008: a token that is nearly right is wrong, and all wrong ones look the same.
pub(super) fn a_token_that_is_nearly_right_is_wrong(field: &Field) -> BoxFuture<'_, Result<()>> {
    async move {
        let browser = field.browser().await?;
        let (name, value) = browser.cookie.split_once('=').unwrap_or_default();
        let swapped: String = value
            .chars()
            .map(|c| if c.is_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() })
            .collect();
        let mut bodies = Vec::new();
        for wrong in ["", " ", &value[1..], &value[..value.len() - 1], &swapped, "x"] {
            let ask = Ask::get("/api/state").with("cookie", &format!("{name}={wrong}"));
            let answer = field.ask(ask).await?;
            ensure!(answer.status == 401, "{wrong:?} got {}", answer.status);
            bodies.push(unchunked(&answer));
        }
        bodies.dedup();
        ensure!(bodies.len() == 1, "answers tell tokens apart: {bodies:?}");
        Ok(())
    }
    .boxed()
}

/// ATK-016: how much of a token is right cannot be told by how long it takes to refuse it.
///
/// What a comparison itself takes is lost in the noise of a connection; this finds work that is done for some
/// wrong tokens only. That the bytes are compared in constant time is what the libraries promise that do it.
pub(super) fn refusals_take_the_same_time(field: &Field) -> BoxFuture<'_, Result<()>> {
    async move {
        let browser = field.browser().await?;
        let (name, value) = browser.cookie.split_once('=').unwrap_or_default();
        let other = |c: char| if c == 'A' { 'B' } else { 'A' };
        let (mut head, mut tail): (Vec<char>, Vec<char>) =
            (value.chars().collect(), value.chars().collect());
        head[0] = other(head[0]);
        // The last one has bits that are not part of the value.
        let last = tail.len() - 2;
        tail[last] = other(tail[last]);
        let wrong = [head, tail].map(|value| value.into_iter().collect::<String>());
        let mut took = [Vec::new(), Vec::new()];
        for _ in 0..TIMED {
            for (wrong, took) in wrong.iter().zip(&mut took) {
                let ask = Ask::get("/api/state").with("cookie", &format!("{name}={wrong}"));
                let begun = std::time::Instant::now();
                let answer = field.ask(ask).await?;
                took.push(begun.elapsed());
                ensure!(answer.status == 401, "a wrong token got {}", answer.status);
            }
        }
        let [early, late] = took.map(|mut took| {
            took.sort_unstable();
            took[took.len() / 2]
        });
        let apart = early.abs_diff(late);
        ensure!(
            apart < early.max(late) / 4 || apart < std::time::Duration::from_micros(100),
            "wrong at once takes {early:?}, wrong at the end {late:?}"
        );
        Ok(())
    }
    .boxed()
}

/// How many refusals of each kind are timed. Fewer than what makes refusals slow.
const TIMED: usize = 40;

/// ATK-009: headers of proxies give no authority.
pub(super) fn forwarding_headers_give_no_authority(field: &Field) -> BoxFuture<'_, Result<()>> {
    async move {
        for (name, value) in [
            ("x-forwarded-for", "127.0.0.1"),
            ("x-forwarded-user", "operator"),
            ("x-real-ip", "127.0.0.1"),
            ("forwarded", "for=127.0.0.1;host=localhost"),
            ("x-original-url", "/"),
            ("x-rewrite-url", "/"),
            ("authorization", "Bearer operator"),
        ] {
            let answer = field.ask(Ask::get("/api/state").with(name, value)).await?;
            ensure!(answer.status == 401, "{name} got {}", answer.status);
        }
        let spoofed =
            Ask::get("/").with("host", "evil.example").with("x-forwarded-host", "localhost");
        let answer = field.ask(spoofed).await?;
        ensure!(answer.status == 421, "a forwarded host got {}", answer.status);
        Ok(())
    }
    .boxed()
}

/// ATK-010: no spelling of a path gets past the guard.
pub(super) fn no_spelling_of_a_path_gets_past(field: &Field) -> BoxFuture<'_, Result<()>> {
    async move {
        for path in [
            "//api/state",
            "/api//state",
            "/api/%73tate",
            "/api/state;x",
            "/api/./state",
            "/x/../api/state",
            "/x/%2e%2e/api/state",
            "/api%2fstate",
            "/api\\state",
            "/in/%77ork",
            "/in//work",
            "/in/work/../club",
            "/%00",
        ] {
            let answer = field.ask(Ask::get(path)).await?;
            ensure!(answer.status == 400, "{path} got {}", answer.status);
        }
        for path in ["/API/state", "/api/state/", "/api/state.", "/api", "/nothing"] {
            let answer = field.ask(Ask::get(path)).await?;
            ensure!(matches!(answer.status, 401 | 404), "{path} got {}", answer.status);
        }
        Ok(())
    }
    .boxed()
}

/// ATK-012, ATK-020, ATK-117: who is not logged in learns nothing.
pub(super) fn strangers_learn_nothing(field: &Field) -> BoxFuture<'_, Result<()>> {
    async move {
        for path in PRIVATE {
            let answer = field.ask(Ask::get(path)).await?;
            ensure!(answer.status == 401, "{path} got {}", answer.status);
            let body = unchunked(&answer);
            ensure!(body == "{\"error\":\"log in first\"}", "{path} says {body}");
        }
        let pulse = field.ask(Ask::get("/healthz")).await?;
        ensure!(pulse.status == 204 && pulse.body.is_empty(), "the pulse says {pulse:?}");
        for (path, words) in [
            ("/startupz", &["starting", "started"][..]),
            (
                "/readyz",
                &["starting", "ready", "degraded", "unconnected", "draining", "unwritable"],
            ),
        ] {
            let word = unchunked(&field.ask(Ask::get(path)).await?);
            let is_a_word = words.iter().any(|it| word == format!("{{\"status\":\"{it}\"}}"));
            ensure!(is_a_word, "{path} says {word}");
        }
        for path in ["/v1/status", "/debug", "/.env", "/config.yaml", "/state.db"] {
            let answer = field.ask(Ask::get(path)).await?;
            ensure!(answer.status == 404, "{path} got {}", answer.status);
        }
        let page = field.ask(Ask::get("/")).await?;
        let version = page.header("server").or(page.header("x-powered-by"));
        ensure!(version.is_none(), "the page says what it is: {version:?}");
        Ok(())
    }
    .boxed()
}

/// ATK-020, ATK-124: numbers are for this machine while nobody else can come, or for whoever has the token; and
/// nobody is named in them.
pub(super) fn numbers_are_for_this_machine_or_the_token(
    field: &Field,
) -> BoxFuture<'_, Result<()>> {
    async move {
        let said = slack::said(field.fresh(), "words for nobody else").to_string();
        let took = field.ask(signed("work", WORK_SECRET, now(), said.as_bytes())).await?;
        ensure!(took.status == 200, "a message got {}", took.status);
        let here = field.ask(Ask::get("/metrics")).await?;
        let numbers = unchunked(&here);
        ensure!(here.status == 200, "without a token, this machine got {}", here.status);
        ensure!(numbers.contains("account=\"work\""), "there are no numbers: {numbers}");
        for private in ["U1", "D1", "words for nobody", "Alice"].iter().chain(&CANARIES) {
            ensure!(!numbers.contains(private), "{private} is among the numbers");
        }
        for (name, value) in [
            ("x-forwarded-for", "203.0.113.7"),
            ("x-forwarded-for", "127.0.0.1"),
            ("x-real-ip", "127.0.0.1"),
            ("forwarded", "for=127.0.0.1"),
            ("x-forwarded-host", "localhost"),
            ("via", "1.1 proxy"),
            ("host", "evil.example"),
            ("host", "localhost.evil.example"),
        ] {
            let answer = field.ask(Ask::get("/metrics").with(name, value)).await?;
            ensure!(answer.status >= 400, "{name}: {value} got {}", answer.status);
            ensure!(!unchunked(&answer).contains("talaria_"), "{name}: {value} got numbers");
        }
        // Whoever names a host has a proxy, and what comes from a proxy looks like this machine.
        let proxied =
            Plain::open(&field.binary, "http: {allowed_hosts: [talaria.example]}\n").await?;
        for host in [proxied.address.as_str(), "localhost", "talaria.example"] {
            let answer = Ask::get("/metrics").with("host", host).to(&proxied.address).await?;
            ensure!(answer.status == 403, "{host}: behind a proxy got {}", answer.status);
        }
        let config = "telemetry: {metrics_token: 0123456789abcdef0123}\n";
        let guarded = Plain::open(&field.binary, config).await?;
        for (given, status) in [
            ("", 403),
            ("Bearer ", 403),
            ("Bearer 0123456789abcdef012", 403),
            ("Bearer 0123456789abcdef01234", 403),
            ("Bearer 0123456789ABCDEF0123", 403),
            ("Bearer 0123456789abcdef0123", 200),
        ] {
            let ask = Ask::get("/metrics").with("authorization", given);
            let answer = ask.to(&guarded.address).await?;
            ensure!(answer.status == status, "{given:?} got {}", answer.status);
        }
        Ok(())
    }
    .boxed()
}

/// ATK-013, ATK-015: guessing ends, also many at a time and with something else attached.
pub(super) fn guessing_ends(field: &Field) -> BoxFuture<'_, Result<()>> {
    async move {
        // Guesses are rebuffed for a minute.
        let plain = Plain::open(&field.binary, "").await?;
        let address = plain.address.as_str();
        let guess = |number: usize| {
            let body = serde_json::json!({ "token": format!("guess-{number}") }).to_string();
            let ask = Ask::post("/api/login", body).with("content-type", JSON);
            let ask =
                if number.is_multiple_of(2) { ask.with("cookie", "talaria-login=x") } else { ask };
            async move { ask.to(address).await }
        };
        let mut looked_at = 0;
        for answer in join_all((0..60).map(guess)).await {
            match answer?.status {
                401 => looked_at += 1,
                429 => {}
                status => anyhow::bail!("a guess got {status}"),
            }
        }
        ensure!(looked_at <= 10, "{looked_at} guesses were not rebuffed");
        Ok(())
    }
    .boxed()
}

/// ATK-018: a credential in an address is refused and not written down.
pub(super) fn a_credential_in_an_address_is_refused(field: &Field) -> BoxFuture<'_, Result<()>> {
    async move {
        for path in ["/?token=canary-in-query", "/api/state?access_token=canary-in-query"] {
            let answer = field.ask(Ask::get(path)).await?;
            ensure!(answer.status == 400, "{path} got {}", answer.status);
        }
        ensure!(!field.output().contains("canary-in-query"), "it is in the log");
        Ok(())
    }
    .boxed()
}

/// ATK-019: one secret for two doors.
pub(super) fn one_secret_for_two_doors_is_refused(field: &Field) -> BoxFuture<'_, Result<()>> {
    async move {
        let home = Home::empty()?;
        let config = "providers: {p: {api_key: canary-for-both-doors}}\n\
                      accounts: {slack: {bot_token: xoxb-1, signing_secret: canary-for-both-doors}}\n";
        home.write("config.yaml", config)?;
        let (code, output) = ended(Launch::new(&field.binary).start(home.path())?).await?;
        ensure!(code == MISCONFIGURED && output.contains("is the same secret as"), "{code}: {output}");
        ensure!(!output.contains("canary"), "it is shown: {output}");
        Ok(())
    }
    .boxed()
}

/// ATK-021: every answer carries the protective headers.
pub(super) fn answers_carry_protective_headers(field: &Field) -> BoxFuture<'_, Result<()>> {
    async move {
        for path in ["/", "/app.js", "/nothing", "/api/state", "/api/login"] {
            let answer = field.ask(Ask::get(path)).await?;
            let policy = answer.header("content-security-policy").unwrap_or_default();
            for word in ["default-src 'none'", "frame-ancestors 'none'"] {
                ensure!(policy.contains(word), "{path}: {policy}");
            }
            ensure!(!policy.contains("unsafe"), "{path}: {policy}");
            ensure!(answer.header("x-content-type-options") == Some("nosniff"), "{path}");
            ensure!(answer.header("referrer-policy") == Some("no-referrer"), "{path}");
        }
        Ok(())
    }
    .boxed()
}

/// ATK-022, ATK-039: what is too large, compressed or endless is not read.
pub(super) fn what_is_too_large_is_not_read(field: &Field) -> BoxFuture<'_, Result<()>> {
    async move {
        let before = memory(field)?;
        let browser = field.browser().await?;
        let say = |body: Vec<u8>| {
            let ask = Ask::post("/api/conversations/chat-0001/messages", body);
            browser.signs(ask.with("content-type", JSON))
        };
        let large = field.ask(say(vec![b'x'; 300 * 1024])).await?;
        ensure!(large.status == 413, "a large message got {}", large.status);
        let packed = field.ask(say(b"{}".to_vec()).with("content-encoding", "gzip")).await?;
        ensure!(packed.status == 415, "a packed message got {}", packed.status);
        let strangers = field.ask(Ask::post("/in/work", vec![b'x'; 3 * 1024 * 1024])).await?;
        ensure!(matches!(strangers.status, 401 | 413), "a large delivery got {}", strangers.status);
        // A body without a length that never ends.
        let mut endless = TcpStream::connect(&field.address).await?;
        let head = format!(
            "POST /in/work HTTP/1.1\r\nhost: {}\r\ntransfer-encoding: chunked\r\n\r\n",
            field.address
        );
        endless.write_all(head.as_bytes()).await?;
        let piece = [b"10000\r\n".as_slice(), &[b'x'; 0x10000], b"\r\n"].concat();
        let mut sent = 0;
        while sent < 64 << 20 && endless.write_all(&piece).await.is_ok() {
            sent += piece.len();
        }
        ensure!(sent < 64 << 20, "it read {sent} bytes of a stranger");
        let long = format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "x".repeat(1 << 20));
        if let Ok(answer) = send(&field.address, long.as_bytes()).await {
            ensure!(answer.status >= 400, "an endless head got {}", answer.status);
        }
        let grown = memory(field)?.saturating_sub(before);
        ensure!(grown < 64 << 20, "it grew by {grown} bytes");
        Ok(())
    }
    .boxed()
}

/// ATK-148: slow heads, idle connections and a flood of strangers keep nobody out.
pub(super) fn a_flood_keeps_nobody_out(field: &Field) -> BoxFuture<'_, Result<()>> {
    async move {
        // Of a flood, those that hold on to a place for nothing lose it before their time is over.
        let quiet = Plain::open(&field.binary, "").await?;
        futures::try_join!(flooded(field), slow_heads_are_cut(&quiet.address))?;
        field.is_well().await
    }
    .boxed()
}

/// Whoever is honest is answered in time, while others hold on to many connections and are refused all the time.
async fn flooded(field: &Field) -> Result<()> {
    let quiet = slowest(field).await?;
    let before = memory(field)?;
    let mut idle = Vec::new();
    for number in 0..700 {
        let mut stream = TcpStream::connect(&field.address).await?;
        if number % 2 == 0 {
            // Half a head, and nothing more.
            let _ = stream.write_all(HALF_A_HEAD).await;
        }
        idle.push(stream);
    }
    let flood = (0..16).map(|_| async {
        for _ in 0..125 {
            // Who floods may be cut off.
            let _ = field.ask(signed("work", "guess", now(), &[b'x'; 1024])).await;
        }
    });
    let (_, honest) = futures::join!(join_all(flood), slowest(field));
    let honest = honest?;
    ensure!(
        honest < quiet * 10 + Duration::from_millis(500),
        "an honest request took {honest:?} in the flood and {quiet:?} before it"
    );
    // Neither who said nothing nor who said half of it is waited for.
    for mut stream in idle {
        let mut heard = Vec::new();
        let cut = stream.read_to_end(&mut heard);
        let cut = tokio::time::timeout(Duration::from_secs(20), cut).await;
        ensure!(cut.is_ok(), "one of 700 is waited for longer than 20 s");
    }
    let grown = memory(field)?.saturating_sub(before);
    ensure!(grown < 64 << 20, "it grew by {grown} bytes");
    Ok(())
}

/// A head that does not go on, although its first byte came in time.
const HALF_A_HEAD: &[u8] = b"GET / HTTP/1.1\r\nho";

/// How long the head of a request may take, as it is documented.
const HEAD: Duration = Duration::from_secs(10);

/// How much longer it may take on a machine that is busy.
const BUSY: Duration = Duration::from_secs(5);

/// A head that does not come, comes half, or comes a byte at a time, is cut when its time is over: not before, so
/// that it is known what cuts it, and not after.
async fn slow_heads_are_cut(address: &str) -> Result<()> {
    let nothing = cut_after(address, b"", Goes::Nowhere);
    let half = cut_after(address, HALF_A_HEAD, Goes::Nowhere);
    let trickling = cut_after(address, HALF_A_HEAD, Goes::On);
    let (nothing, half, trickling) = futures::try_join!(nothing, half, trickling)?;
    for (what, took) in [("nothing", nothing), ("half a head", half), ("a trickle", trickling)] {
        let is_in_time = (HEAD - BUSY..HEAD + BUSY).contains(&took);
        ensure!(is_in_time, "{what} was cut after {took:?} instead of {HEAD:?}");
    }
    Ok(())
}

/// What becomes of a head that was begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Goes {
    Nowhere,
    /// A byte at a time, and is never silent for long.
    On,
}

/// How long somebody waits for the rest of a head.
async fn cut_after(address: &str, begun: &[u8], goes: Goes) -> Result<Duration> {
    let mut stream = TcpStream::connect(address).await?;
    let since = std::time::Instant::now();
    stream.write_all(begun).await?;
    let (mut reading, mut writing) = stream.into_split();
    let trickle = async {
        match goes {
            Goes::Nowhere => {}
            // Ends when nobody takes them any more.
            Goes::On => {
                while writing.write_all(b"o").await.is_ok() {
                    tokio::time::sleep(Duration::from_millis(300)).await;
                }
            }
        }
        std::future::pending::<()>().await
    };
    let mut heard = Vec::new();
    tokio::select! {
        // Whoever is cut off in the middle of a byte hears of it as an error.
        _ = reading.read_to_end(&mut heard) => {}
        () = trickle => {}
        () = tokio::time::sleep(2 * HEAD) => {
            let begun = String::from_utf8_lossy(begun);
            anyhow::bail!("{begun:?} that goes {goes:?} is waited for longer than {:?}", 2 * HEAD)
        }
    }
    let heard = String::from_utf8_lossy(&heard);
    ensure!(!heard.starts_with("HTTP/1.1 2"), "half a head was answered: {heard}");
    Ok(since.elapsed())
}

/// ATK-038: whoever sends most of a body under a signature that could be Slack's takes no memory, no time and no place.
pub(super) fn bad_signatures_cost_little(field: &Field) -> BoxFuture<'_, Result<()>> {
    /// The most that is read of a request, but for one byte.
    const NEARLY: usize = 1024 * 1024 - 1;
    async move {
        let before = memory(field)?;
        let hold = |_| async {
            let mut stream = TcpStream::connect(&field.address).await?;
            let head = format!(
                "POST /in/work HTTP/1.1\r\nhost: {}\r\ncontent-length: {}\r\n\
                 x-slack-request-timestamp: {}\r\nx-slack-signature: v0={}\r\n\r\n",
                field.address,
                NEARLY + 1,
                now(),
                "0".repeat(64)
            );
            stream.write_all(head.as_bytes()).await?;
            // Whoever has to make room for others is cut off.
            let _ = stream.write_all(&vec![b'x'; NEARLY]).await;
            Ok::<_, std::io::Error>(stream)
        };
        let mut held = Vec::new();
        for stream in join_all((0..200).map(hold)).await {
            held.push(stream?);
        }
        let begun = std::time::Instant::now();
        let said = slack::said(field.fresh(), "said while others hold on").to_string();
        let took = field.ask(signed("work", WORK_SECRET, now(), said.as_bytes())).await?;
        ensure!(took.status == 200, "a good request got {}", took.status);
        let waited = begun.elapsed();
        ensure!(waited < Duration::from_secs(3), "a good request took {waited:?}");
        // What was sent is read little by little.
        for _ in 0..10 {
            let grown = memory(field)?.saturating_sub(before);
            ensure!(grown < 64 << 20, "it grew by {grown} bytes");
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        // A byte now and then prolongs nothing.
        let ends = held.into_iter().map(|stream| async {
            let (mut reading, mut writing) = stream.into_split();
            let trickle = async {
                loop {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    let _ = writing.write_all(b"x").await;
                }
            };
            let mut answer = Vec::new();
            tokio::select! {
                _ = reading.read_to_end(&mut answer) => {}
                () = trickle => {}
            }
        });
        let cut = tokio::time::timeout(Duration::from_secs(20), join_all(ends)).await;
        ensure!(cut.is_ok(), "a body is waited for longer than 20 s");
        field.is_well().await
    }
    .boxed()
}

/// How long the slowest of some honest requests takes.
async fn slowest(field: &Field) -> Result<Duration> {
    let mut slowest = Duration::ZERO;
    for _ in 0..50 {
        let begun = std::time::Instant::now();
        let page = field.ask(Ask::get("/")).await?;
        ensure!(page.status == 200, "an honest request got {}", page.status);
        slowest = slowest.max(begun.elapsed());
    }
    Ok(slowest)
}

/// Bytes of memory that the gateway has.
fn memory(field: &Field) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", field.process.pid()))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    Ok(kilobytes.unwrap_or_default() * 1024)
}

/// ATK-024: no secret is shown by any command, page or line of the log.
pub(super) fn no_secret_is_shown(field: &Field) -> BoxFuture<'_, Result<()>> {
    async move {
        let mut seen = vec![("the log", field.output())];
        for (what, arguments) in [
            ("config show", &["config", "show"][..]),
            ("config check", &["config", "check"]),
            ("status", &["status", "--json"]),
            ("sessions list", &["sessions", "list"]),
            ("model", &["model", "--no-test"]),
        ] {
            seen.push((what, field.command(arguments).await?.1));
        }
        let browser = field.browser().await?;
        for path in ["/api/state", "/api/conversations", "/api/search?q=xoxb"] {
            seen.push((path, field.ask(browser.signs(Ask::get(path))).await?.body));
        }
        for (what, text) in seen {
            let found = CANARIES.iter().find(|canary| text.contains(**canary));
            ensure!(found.is_none(), "{what} shows {found:?}");
        }
        Ok(())
    }
    .boxed()
}

/// ATK-007: what a client says of itself is refused, not believed.
pub(super) fn a_client_cannot_say_who_it_is(field: &Field) -> BoxFuture<'_, Result<()>> {
    async move {
        let browser = field.browser().await?;
        let asked = field.model.requests();
        for extra in
            ["\"role\":\"admin\"", "\"from\":\"U1\"", "\"account\":\"work\"", "\"scopes\":[\"*\"]"]
        {
            let body = format!("{{\"id\":\"message-1\",\"text\":\"hi\",{extra}}}");
            let ask =
                Ask::post("/api/conversations/chat-0001/messages", body).with("content-type", JSON);
            let answer = field.ask(browser.signs(ask)).await?;
            ensure!(answer.status == 400, "{extra} got {}", answer.status);
        }
        ensure!(field.model.requests() == asked, "one of them began a turn");
        Ok(())
    }
    .boxed()
}

/// ATK-012, ATK-066: an id is no authority, and no path: neither one that is guessed nor the one that a
/// conversation elsewhere really has.
pub(super) fn an_id_opens_nothing(field: &Field) -> BoxFuture<'_, Result<()>> {
    async move {
        let browser = field.browser().await?;
        let number = field.fresh();
        let (theirs, ours) = (format!("aunt Zanzibar {number}"), format!("uncle Quagga {number}"));
        said_by_somebody(field, number, &theirs).await?;
        field.shown(&theirs).await?;
        let mut ids = real_ids(field).await?;
        ids.extend(MADE_UP.map(str::to_owned));
        said_by_us(field, &browser, &ours).await?;
        for id in &ids {
            let history =
                field.ask(browser.signs(Ask::get(&format!("/api/conversations/{id}/history"))));
            let history = history.await?;
            ensure!(history.status < 500, "{id} got {}", history.status);
            for private in [theirs.as_str(), "model:", "root:"] {
                ensure!(!history.body.contains(private), "{id} showed {:.300}", history.body);
            }
            let file = field.ask(browser.signs(Ask::get(&format!("/api/files/{id}")))).await?;
            ensure!(matches!(file.status, 400 | 404), "{id} as a file got {}", file.status);
        }
        nobody_else_is_stopped(field, &browser, &ids).await?;
        for id in ["../../config.yaml", "/etc/passwd", "' OR 1=1 --"] {
            let (code, output) = field.command(&["sessions", "show", id]).await?;
            ensure!(code != 0 && !output.contains("model:"), "{id}: {code}: {output}");
        }
        field.is_well().await
    }
    .boxed()
}

/// Ids that somebody might make up.
const MADE_UP: [&str; 9] = [
    "work:D1",
    "slack-D1",
    "D1",
    "..",
    "..%2F..%2Fconfig.yaml",
    "%2Fetc%2Fpasswd",
    "state.db",
    "chat-0001%00",
    "work%3AD1%3A1699999999.000100",
];

/// What we say on the page goes here.
const OURS: &str = "/api/conversations/chat-0012";

/// Somebody says something on Slack.
async fn said_by_somebody(field: &Field, number: u64, words: &str) -> Result<()> {
    let body = slack::said(number, words).to_string();
    let took = field.ask(signed("work", WORK_SECRET, now(), body.as_bytes())).await?;
    ensure!(took.status == 200, "a message got {}", took.status);
    Ok(())
}

/// The ids and keys of their conversations, as an address has them.
async fn real_ids(field: &Field) -> Result<Vec<String>> {
    let (_, listed) = field.command(&["sessions", "list", "--account", "work", "--json"]).await?;
    let listed: serde_json::Value = serde_json::from_str(&listed)?;
    let sessions = listed["sessions"].as_array().into_iter().flatten();
    let ids = sessions.flat_map(|session| [session["id"].as_str(), session["key"].as_str()]);
    let ids: Vec<_> = ids.flatten().map(|id| id.replace(':', "%3A")).collect();
    ensure!(ids.len() >= 2, "nobody has a conversation: {listed}");
    Ok(ids)
}

/// We say something on the page, and find it again: an id of ours opens what is ours.
pub(super) async fn said_by_us(field: &Field, browser: &Browser, words: &str) -> Result<()> {
    let body = serde_json::json!({ "id": format!("message-{}", field.fresh()), "text": words });
    let ask = Ask::post(&format!("{OURS}/messages"), body.to_string());
    let said = field.ask(browser.signs(ask.with("content-type", JSON))).await?;
    ensure!(said.status == 200, "our own message got {}", said.status);
    let found = async {
        let history = || browser.signs(Ask::get(&format!("{OURS}/history")));
        while !unchunked(&field.ask(history()).await?).contains(words) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(Duration::from_secs(30), found).await.context("we do not find it")?
}

/// A turn of somebody else goes on, whichever id is stopped meanwhile.
async fn nobody_else_is_stopped(field: &Field, browser: &Browser, ids: &[String]) -> Result<()> {
    let stop = |conversation: &str, name: String| {
        let body = serde_json::json!({ "id": name }).to_string();
        let ask = Ask::post(&format!("{conversation}/stop"), body).with("content-type", JSON);
        field.ask(browser.signs(ask))
    };
    let (number, asked) = (field.fresh(), field.model.requests());
    let words = format!("and my cousin Okapi {number}");
    field.model.hold(Hold::BeforeAnswering);
    said_by_somebody(field, number, &words).await?;
    let begun = field.model.until_requests(asked + 1);
    let begun = tokio::time::timeout(Duration::from_secs(30), begun).await;
    let mut stopped = Vec::new();
    for (nth, id) in ids.iter().enumerate() {
        let conversation = format!("/api/conversations/{id}");
        stopped.push((id, stop(&conversation, format!("stop-{number}-{nth}")).await));
    }
    let ours = stop(OURS, format!("stop-{number}-ours")).await;
    // Whatever came of it, others can go on.
    field.model.hold(Hold::Never);
    begun.context("no turn began")?;
    for (id, answer) in stopped {
        let status = answer?.status;
        ensure!(status < 500, "{id} stopped got {status}");
    }
    let ours = ours?.status;
    ensure!(ours == 200, "we may not even stop what is ours: {ours}");
    field.shown(&words).await
}

/// Over HTTPS a cookie is one that nobody can plant or overhear, and no other one is a login.
async fn over_https(field: &Field, plain: &Plain) -> Result<()> {
    let minted = super::field::command(&field.binary, plain.home.path(), &["open"]).await?.1;
    let token = minted.trim().rsplit_once("#login=").map_or("", |(_, token)| token);
    let origin = format!("https://{}", plain.address);
    let login = Ask::post("/api/login", format!("{{\"token\":\"{token}\"}}"));
    let login = login.with("content-type", JSON).with("origin", &origin);
    let login = login.to(&plain.address).await?;
    let set = login.header("set-cookie").unwrap_or_default();
    ensure!(set.starts_with("__Host-"), "any host can plant {set}");
    for word in ["; Secure", "; HttpOnly", "; SameSite=Strict", "; Path=/"] {
        ensure!(set.contains(word), "the cookie is not {word}: {set}");
    }
    ensure!(!set.contains("Domain"), "the cookie is for others, too: {set}");
    let lasts = set.split("Max-Age=").nth(1).and_then(|rest| rest.split(';').next());
    let lasts: u64 = lasts.unwrap_or_default().parse()?;
    ensure!(lasts <= 7 * 24 * 60 * 60, "an idle login lasts {lasts} s");
    let cookie = set.split(';').next().unwrap_or_default();
    let planted = cookie.trim_start_matches("__Host-");
    for (cookie, status) in [(cookie, 200), (planted, 401)] {
        let ask = Ask::get("/api/state").with("cookie", cookie).with("origin", &origin);
        let answer = ask.to(&plain.address).await?;
        ensure!(answer.status == status, "{cookie} over HTTPS got {}", answer.status);
    }
    Ok(())
}

/// ATK-017, ATK-070: a login ends everywhere at once, works once and is made by nobody else.
pub(super) fn a_login_ends_when_it_is_ended(field: &Field) -> BoxFuture<'_, Result<()>> {
    async move {
        let plain = Plain::open(&field.binary, "").await?;
        let minted = super::field::command(&field.binary, plain.home.path(), &["open"]).await?.1;
        let token = minted.trim().rsplit_once("#login=").map_or("", |(_, token)| token);
        let body = format!("{{\"token\":\"{token}\"}}");
        let login = || Ask::post("/api/login", body.clone()).with("content-type", JSON);
        // A cookie that somebody else has set is not taken up.
        let first =
            login().with("cookie", "talaria-login=fixed; talaria=fixed").to(&plain.address).await?;
        ensure!(first.status == 204, "the login is refused: {first:?}");
        let cookie = first.header("set-cookie").unwrap_or_default().to_owned();
        ensure!(!cookie.contains("fixed"), "the cookie was chosen by somebody else: {cookie}");
        for word in ["HttpOnly", "SameSite=Strict", "Path=/"] {
            ensure!(cookie.contains(word), "the cookie is not {word}: {cookie}");
        }
        let again = login().to(&plain.address).await?;
        ensure!(again.status == 401, "the same link again got {}", again.status);
        over_https(field, &plain).await?;
        let cookie = cookie.split(';').next().unwrap_or_default().to_owned();
        let state = Ask::get("/api/state").with("cookie", &cookie).to(&plain.address).await?;
        let state: serde_json::Value = serde_json::from_str(&unchunked(&state))?;
        let csrf = state["csrf"].as_str().unwrap_or_default().to_owned();
        let mut stream = TcpStream::connect(&plain.address).await?;
        let request = format!(
            "GET /api/events HTTP/1.1\r\nhost: {}\r\ncookie: {cookie}\r\nconnection: close\r\n\r\n",
            plain.address
        );
        stream.write_all(request.as_bytes()).await?;
        let mut head = [0; 12];
        stream.read_exact(&mut head).await?;
        ensure!(&head == b"HTTP/1.1 200", "no stream: {}", String::from_utf8_lossy(&head));
        let logout = Ask::post("/api/logout", "{}")
            .with("content-type", JSON)
            .with("cookie", &cookie)
            .with("x-talaria-csrf", &csrf);
        let ended = logout.to(&plain.address).await?;
        ensure!(ended.status == 204, "logging out got {}", ended.status);
        let mut rest = Vec::new();
        let closed =
            tokio::time::timeout(Duration::from_secs(2), stream.read_to_end(&mut rest)).await;
        ensure!(closed.is_ok(), "the stream outlives the login");
        let after = Ask::get("/api/state").with("cookie", &cookie).to(&plain.address).await?;
        ensure!(after.status == 401, "the login outlives itself: {}", after.status);
        Ok(())
    }
    .boxed()
}
