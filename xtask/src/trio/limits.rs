//! What each vendor documents about how much may be asked of it. A vendor refuses what goes beyond; and
//! what only good manners forbid is looked at afterwards.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use talaria_testkit::scripted::Reply;
use talaria_testkit::vendors::{Act, Call, Verb};
use tokio::time::Instant;

use super::places::{DISCORD, SLACK, TELEGRAM};

/// So many within so long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule {
    pub(crate) account: &'static str,
    pub(crate) verbs: &'static [Verb],
    pub(crate) per: Per,
    pub(crate) most: usize,
    pub(crate) within: Duration,
}

/// What is counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Per {
    Account,
    Chat,
    /// A chat of several people.
    Group,
    Message,
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

const SPEECH: &[Verb] = &[Verb::Post, Verb::Edit];

/// What the vendors refuse.
///
/// Telegram: <https://core.telegram.org/bots/faq#my-bot-is-hitting-limits-how-do-i-avoid-this> (one message
/// a second in a chat, short bursts allowed; 20 a minute in a group; 30 a second over all) and
/// <https://core.telegram.org/api/bots/ai> (drafts, together with signs of typing). Discord:
/// <https://discord.com/developers/docs/topics/rate-limits> (its bucket for a channel is the vendor's own:
/// every answer tells what is left of it). Slack:
/// <https://docs.slack.dev/apis/web-api/rate-limits> (a message a second in a chat, short bursts allowed;
/// 50 edits a minute in a workspace).
pub(crate) const ENFORCED: [Rule; 8] = [
    Rule { account: TELEGRAM, verbs: SPEECH, per: Per::Chat, most: 10, within: seconds(10) },
    Rule { account: TELEGRAM, verbs: SPEECH, per: Per::Group, most: 20, within: seconds(60) },
    Rule { account: TELEGRAM, verbs: SPEECH, per: Per::Account, most: 30, within: seconds(1) },
    Rule { account: TELEGRAM, verbs: SHOW, per: Per::Chat, most: 40, within: seconds(30) },
    Rule { account: DISCORD, verbs: EVERYTHING, per: Per::Account, most: 50, within: seconds(1) },
    Rule { account: SLACK, verbs: &[Verb::Post], per: Per::Chat, most: 10, within: seconds(10) },
    Rule { account: SLACK, verbs: &[Verb::Edit], per: Per::Account, most: 50, within: seconds(60) },
    Rule {
        account: SLACK,
        verbs: &[Verb::Sign],
        per: Per::Account,
        most: 600,
        within: seconds(60),
    },
];

const SHOW: &[Verb] = &[Verb::Draft, Verb::Sign];
const EVERYTHING: &[Verb] =
    &[Verb::Post, Verb::Edit, Verb::Delete, Verb::Sign, Verb::Draft, Verb::Other];

/// How often one message is changed: a steady interval, and the end of the answer at any moment.
pub(crate) const EDITS: [Rule; 3] = [
    Rule {
        account: TELEGRAM,
        verbs: &[Verb::Edit],
        per: Per::Message,
        most: 4,
        within: seconds(3),
    },
    Rule { account: DISCORD, verbs: &[Verb::Edit], per: Per::Message, most: 4, within: seconds(3) },
    Rule { account: SLACK, verbs: &[Verb::Edit], per: Per::Message, most: 4, within: seconds(9) },
];

impl Rule {
    fn key(&self, act: &Act) -> Option<String> {
        // Telegram's groups have negative numbers.
        let is_there = self.per != Per::Group || act.chat.starts_with('-');
        let counts = is_there && self.verbs.contains(&act.verb);
        counts.then(|| match self.per {
            Per::Account => String::new(),
            Per::Chat | Per::Group => act.chat.clone(),
            Per::Message => format!("{}/{}", act.chat, act.message.as_deref().unwrap_or_default()),
        })
    }
}

/// How much was asked lately.
#[derive(Default)]
pub(crate) struct Meter {
    lately: HashMap<(usize, String), VecDeque<Instant>>,
}

impl Meter {
    /// Counts an act, or says after how long it would be let through.
    pub(crate) fn take(&mut self, account: &str, act: &Act, now: Instant) -> Result<(), Duration> {
        let concerns = ENFORCED.iter().enumerate().filter(|(_, rule)| rule.account == account);
        let keys: Vec<_> =
            concerns.filter_map(|(n, rule)| Some((n, rule, rule.key(act)?))).collect();
        for (number, rule, key) in &keys {
            let lately = self.lately.entry((*number, key.clone())).or_default();
            while lately.front().is_some_and(|at| now - *at >= rule.within) {
                lately.pop_front();
            }
            if lately.len() >= rule.most {
                return Err(rule.within - (now - lately[0]));
            }
        }
        for (number, _, key) in keys {
            self.lately.entry((number, key)).or_default().push_back(now);
        }
        Ok(())
    }
}

/// "Later", as each vendor says it.
pub(crate) fn later(account: &str, wait: Duration) -> Reply {
    let whole = wait.as_secs_f64().ceil().max(1.0);
    let body = match account {
        TELEGRAM => format!(
            r#"{{"ok":false,"error_code":429,"description":"Too Many Requests: retry after {whole}","parameters":{{"retry_after":{whole}}}}}"#
        ),
        DISCORD => format!(
            r#"{{"message":"You are being rate limited.","retry_after":{:.3},"global":false}}"#,
            wait.as_secs_f64()
        ),
        _ => r#"{"ok":false,"error":"ratelimited"}"#.to_owned(),
    };
    let reply = Reply::status(429, body).with("content-type", "application/json");
    let reply = reply.with("retry-after", &whole.to_string());
    match account {
        DISCORD => reply.with("x-ratelimit-reset-after", &format!("{:.3}", wait.as_secs_f64())),
        _ => reply,
    }
}

/// What was done to messages too often, or twice at once.
pub(crate) fn judge(account: &'static str, calls: &[Call]) -> Vec<String> {
    let mut found = Vec::new();
    let mut by_message: HashMap<String, Vec<&Call>> = HashMap::new();
    for rule in EDITS.iter().filter(|rule| rule.account == account) {
        // What was refused has changed nothing.
        for call in calls.iter().filter(|call| call.status != Some(429)) {
            if let Some(key) = rule.key(&call.act) {
                by_message.entry(key).or_default().push(call);
            }
        }
        for (message, edits) in &by_message {
            let too_many = edits.windows(rule.most + 1);
            let too_many = too_many.filter(|edits| edits[rule.most].at - edits[0].at < rule.within);
            found.extend(too_many.take(1).map(|edits| {
                let took = edits[rule.most].at - edits[0].at;
                format!("{account}: {message} was edited {} times in {took:?}", rule.most + 1)
            }));
            let overlaps = edits
                .windows(2)
                .filter(|pair| pair[0].ended.is_none_or(|ended| ended > pair[1].at));
            found.extend(overlaps.take(1).map(|_| {
                format!("{account}: {message} was edited while an edit of it was under way")
            }));
        }
    }
    found
}

/// Requests that came although their vendor had asked for time: the same chat, the same verb, and less
/// than the time that was asked for.
///
/// What was asked of an earlier life is not held against a later one. The gateway writes a wait down only
/// in the row of the final that was refused, after it has read the refusal; the pauses of chats, of edits
/// and of accounts, and so whatever a preview was told, are in its memory and die with it.
pub(crate) fn impatient(
    account: &'static str,
    calls: &[Call],
    starts: &[Instant],
) -> Vec<(Verb, String)> {
    let life = |at: Instant| starts.iter().filter(|start| **start <= at).count();
    let mut found = Vec::new();
    let mut asked: HashMap<(Verb, &str), Wait> = HashMap::new();
    for call in calls.iter().filter(|call| SPEECH.contains(&call.act.verb)) {
        let key = (call.act.verb, call.act.chat.as_str());
        if let Some(Wait { life: told, until, time }) = asked.get(&key)
            && call.at < *until
            && life(call.at) == *told
        {
            let early = *until - call.at;
            let (verb, chat) = key;
            let what =
                format!("{account}: {verb:?} in {chat} came {early:?} before {time:?} were over");
            found.push((verb, what));
        }
        if let (Some(429), Some(time), Some(ended)) = (call.status, call.wait, call.ended) {
            let until = ended + time.mul_f64(0.9);
            asked.insert(key, Wait { life: life(call.at), until, time });
        }
    }
    found
}

/// What a vendor asked for.
struct Wait {
    /// The life of the gateway that it was asked of.
    life: usize,
    until: Instant,
    time: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Edits of one message, each with its beginning and end in milliseconds.
    fn edits(times: &[(u64, u64)]) -> Vec<Call> {
        let start = Instant::now();
        let at = |millis: u64| start + Duration::from_millis(millis);
        let act = Act {
            verb: Verb::Edit,
            chat: "c".into(),
            message: Some("m".into()),
            text: String::new(),
        };
        let call = |(from, to): &(u64, u64)| Call {
            act: act.clone(),
            at: at(*from),
            ended: Some(at(*to)),
            status: Some(200),
            wait: None,
        };
        times.iter().map(call).collect()
    }

    #[test]
    fn a_steady_interval_and_an_end_at_any_moment_are_fine() {
        let steady = edits(&[(0, 9), (1_000, 1_009), (2_000, 2_009), (2_100, 2_109)]);
        assert_eq!(judge(DISCORD, &steady), [""; 0]);
    }

    #[test]
    fn too_many_edits_and_two_at_once_are_found() {
        let hasty = edits(&[(0, 9), (300, 309), (600, 609), (900, 909), (1_200, 1_209)]);
        assert_eq!(judge(DISCORD, &hasty).len(), 1);
        let doubled = edits(&[(0, 900), (800, 1_000)]);
        assert_eq!(judge(SLACK, &doubled).len(), 1);
    }

    #[test]
    fn whoever_comes_before_the_time_is_found() {
        let mut calls = edits(&[(0, 1), (500, 501), (2_000, 2_001)]);
        (calls[0].status, calls[0].wait) = (Some(429), Some(seconds(1)));
        assert_eq!(impatient(SLACK, &calls, &[]).len(), 1);
        let (before, between) = (calls[0].at - seconds(1), calls[0].at + seconds(1) / 4);
        assert_eq!(impatient(SLACK, &calls, &[before]).len(), 1);
        assert_eq!(
            impatient(SLACK, &calls, &[before, between]).len(),
            0,
            "the next life knows nothing"
        );
        let told_again = calls[0].at - seconds(1) / 10;
        let lives = [before, told_again];
        assert_eq!(impatient(SLACK, &calls, &lives).len(), 1, "it was this life that was told");
        let after = calls[2].at - seconds(1) / 10;
        assert_eq!(impatient(SLACK, &calls, &[before, after]).len(), 1, "the next life came later");
        calls.remove(1);
        assert_eq!(impatient(SLACK, &calls, &[]).len(), 0);
    }

    #[test]
    fn a_vendor_refuses_what_goes_beyond_and_says_until_when() {
        let (mut meter, now) = (Meter::default(), Instant::now());
        let act = Act { verb: Verb::Post, chat: "c".into(), ..Act::default() };
        for _ in 0..10 {
            assert_eq!(meter.take(TELEGRAM, &act, now), Ok(()));
        }
        assert_eq!(meter.take(TELEGRAM, &act, now + seconds(4)), Err(seconds(6)));
        assert_eq!(meter.take(TELEGRAM, &act, now + seconds(10)), Ok(()));
    }
}
