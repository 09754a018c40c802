//! Whether a request comes from Slack: signature version `v0` over the bytes as they came.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use talaria_model::{Secret, Timestamp};

/// How far a request's time may be from ours. What is older may be somebody's recording.
const WINDOW: u64 = 300;

/// Whether the signature fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Genuine,
    Forged,
}

/// What a request's head says of whose it is. It has the shape of the truth; only its body shows whether it is.
pub(super) struct Claim<'a> {
    timestamp: &'a str,
    signature: [u8; 32],
}

impl<'a> Claim<'a> {
    /// None for what cannot be genuine, whatever the body is.
    pub(super) fn read(
        timestamp: Option<&'a str>,
        signature: Option<&str>,
        now: Timestamp,
    ) -> Option<Self> {
        let timestamp = timestamp?;
        if !timestamp.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let sent: u64 = timestamp.parse().ok()?;
        let now = u64::try_from(now.as_millis() / 1000).ok()?;
        let signature = unhex(signature?.strip_prefix("v0=")?)?.try_into().ok()?;
        (now.abs_diff(sent) <= WINDOW).then_some(Self { timestamp, signature })
    }

    pub(super) fn verify(&self, secret: &Secret, body: &[u8]) -> Verdict {
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.expose().as_bytes())
            .expect("a key of any length is one");
        mac.update(format!("v0:{}:", self.timestamp).as_bytes());
        mac.update(body);
        // Compares in a time that does not depend on the bytes.
        match mac.verify_slice(&self.signature) {
            Ok(()) => Verdict::Genuine,
            Err(_) => Verdict::Forged,
        }
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| Some(digit(pair[0])? << 4 | digit(*pair.get(1)?)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "8f742231b10e8888abcd99yyyzzz85a5";
    const AT: &str = "1531420618";
    const BODY: &str = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
    const SIGNED: &str = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503";

    fn check(at: &str, signature: &str, body: &str, now: u64) -> Verdict {
        let now = Timestamp::from_millis(i64::try_from(now).unwrap() * 1000);
        match Claim::read(Some(at), Some(signature), now) {
            Some(claim) => claim.verify(&Secret::new(SECRET), body.as_bytes()),
            None => Verdict::Forged,
        }
    }

    #[test]
    fn slack_s_own_example_is_genuine() {
        assert_eq!(check(AT, SIGNED, BODY, 1_531_420_618), Verdict::Genuine);
        let short = "v0=32117be0e642e285f227cc9e0be99f9a0590782c73d7c147ca569678e134deea";
        assert_eq!(check(AT, short, "token=xyzz0W&text=", 1_531_420_618), Verdict::Genuine);
    }

    #[test]
    fn everything_else_is_forged() {
        let now = 1_531_420_618;
        assert_eq!(check(AT, SIGNED, BODY, now + 300), Verdict::Genuine);
        assert_eq!(check(AT, SIGNED, BODY, now + 301), Verdict::Forged, "a recording");
        assert_eq!(check(AT, SIGNED, BODY, now - 301), Verdict::Forged, "from the future");
        assert_eq!(check(AT, SIGNED, &BODY[1..], now), Verdict::Forged, "another body");
        assert_eq!(check("1531420619", SIGNED, BODY, now), Verdict::Forged, "another time");
        assert_eq!(check("+1531420618", SIGNED, BODY, now), Verdict::Forged);
        for signature in ["", "v0=", "v0=zz", "v0=a", &SIGNED[3..], &SIGNED.to_uppercase()] {
            assert_eq!(check(AT, signature, BODY, now), Verdict::Forged, "{signature:?}");
        }
    }

    #[test]
    fn what_cannot_be_genuine_is_known_by_its_head() {
        let read = |at, signature, now: i64| {
            Claim::read(at, signature, Timestamp::from_millis(now * 1000)).is_some()
        };
        let (now, longer) = (1_531_420_618, format!("{SIGNED}00"));
        assert!(read(Some(AT), Some(SIGNED), now));
        assert!(!read(None, Some(SIGNED), now));
        assert!(!read(Some(AT), None, now));
        assert!(!read(Some("+1531420618"), Some(SIGNED), now));
        assert!(!read(Some(AT), Some(&SIGNED[..SIGNED.len() - 2]), now), "too short");
        assert!(!read(Some(AT), Some(&longer), now), "too long");
        assert!(!read(Some(AT), Some(SIGNED), now + 301), "a recording");
        assert!(!read(Some(AT), Some(SIGNED), now - 301), "from the future");
    }
}
