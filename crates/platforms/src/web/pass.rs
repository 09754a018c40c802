//! The pass a browser carries after login: a signed cookie, and the token against forged requests
//! that belongs to it.
//!
//! A pass is not stored anywhere, so it survives a restart. Replacing the key ends every pass. One that
//! is used is handed out again for longer, so that nothing has to be written down about when that was.

use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use talaria_clock::Clock;
use talaria_machine::{Mode, Private, make_for_us, open_to};
use talaria_model::Timestamp;
use tokio::sync::watch;

use super::term::Term;

pub(super) type Key = [u8; 32];

/// Where the key is, in the folder of the account.
pub(super) const KEY: &str = "login.key";

const ID: usize = 16;
const MOMENT: usize = 8;
const SIGNED: usize = ID + 2 * MOMENT;
const TAG: usize = 32;

/// A pass that was not used for so long has ended.
const IDLE: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// How often a pass that is used is handed out for longer.
const PROLONGED_EVERY: Duration = Duration::from_secs(24 * 60 * 60);

/// Proof that a browser has logged in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pass {
    id: [u8; ID],
    /// When it ends, however much it is used.
    expires: Timestamp,
    /// When it ends as it is.
    until: Timestamp,
}

/// A pass as a browser gets it.
pub(super) struct Issued {
    /// What the cookie holds.
    pub(super) value: String,
    /// How long that is good for.
    pub(super) lasts: Duration,
}

/// A pass that was shown to us.
pub(super) struct Recognised {
    pub(super) pass: Pass,
    /// How long it holds. Like the longer one it goes by the key that recognised it: not even an end that
    /// comes while that is being done is missed.
    pub(super) term: Term,
    /// The same one for longer, when it is time. It is signed with the key that recognised it: whoever
    /// replaces that key meanwhile ends this one, too.
    pub(super) prolonged: Option<Issued>,
}

/// Issues passes and recognises them.
pub(super) struct Passes {
    path: PathBuf,
    lifetime: Duration,
    clock: Arc<dyn Clock>,
    /// Whoever has looked at a key learns of its end here.
    key: watch::Sender<Key>,
}

impl Passes {
    /// Reads the key, or makes one that only this user can read.
    pub(super) fn open(
        folder: &Path,
        lifetime: Duration,
        clock: Arc<dyn Clock>,
    ) -> io::Result<Self> {
        private_folder(folder)?;
        let path = folder.join(KEY);
        let key = match stored(&path)? {
            Some(key) => key,
            None => replace(&path)?,
        };
        Ok(Self { path, lifetime, clock, key: watch::Sender::new(key) })
    }

    /// A pass for a browser that has just proved itself.
    pub(super) fn issue(&self) -> Issued {
        let now = self.clock.now();
        let expires = now + self.lifetime;
        let until = expires.min(now + IDLE);
        sealed(&self.key(), &Pass { id: rand::random(), expires, until }, now)
    }

    /// The pass in a cookie value, if we issued it under the present key and it has not ended.
    pub(super) fn recognise(&self, cookie: &str) -> Option<Recognised> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(cookie).ok()?;
        let (signed, tag) = bytes.split_at_checked(SIGNED)?;
        let mut keys = self.key.subscribe();
        let key = *keys.borrow_and_update();
        mac(&key, b"login", signed).verify_slice(tag).ok()?;
        let (id, moments) = signed.split_at(ID);
        let (expires, until) = moments.split_at(MOMENT);
        let moment =
            |bytes: &[u8]| Some(Timestamp::from_millis(i64::from_be_bytes(bytes.try_into().ok()?)));
        let (expires, until) = (moment(expires)?, moment(until)?);
        let pass = Pass { id: id.try_into().ok()?, expires, until };
        let now = self.clock.now();
        if now >= pass.until {
            return None;
        }
        let longer = Pass { until: pass.expires.min(now + IDLE), ..pass };
        let gained = longer.until.since(pass.until);
        let is_time =
            gained >= PROLONGED_EVERY || (longer.until == pass.expires && !gained.is_zero());
        let prolonged = is_time.then(|| sealed(&key, &longer, now));
        let term = Term::new(self.clock.clone(), pass.until, keys);
        Some(Recognised { pass, term, prolonged })
    }

    /// The token that requests under this pass must carry in a header, where no other site can put
    /// it.
    pub(super) fn token(&self, pass: &Pass) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(mac(&self.key(), b"token", &pass.id).finalize().into_bytes())
    }

    /// Whether a header carries the token of this pass.
    pub(super) fn token_fits(&self, pass: &Pass, token: &str) -> bool {
        BASE64_URL_SAFE_NO_PAD
            .decode(token)
            .is_ok_and(|token| mac(&self.key(), b"token", &pass.id).verify_slice(&token).is_ok())
    }

    /// Ends every pass.
    pub(super) fn revoke_all(&self) -> io::Result<()> {
        self.key.send_replace(replace(&self.path)?);
        Ok(())
    }

    fn key(&self) -> Key {
        *self.key.borrow()
    }
}

/// A pass, signed.
fn sealed(key: &Key, pass: &Pass, now: Timestamp) -> Issued {
    let mut value = Vec::with_capacity(SIGNED + TAG);
    value.extend(pass.id);
    value.extend(pass.expires.as_millis().to_be_bytes());
    value.extend(pass.until.as_millis().to_be_bytes());
    let tag = mac(key, b"login", &value).finalize().into_bytes();
    value.extend(tag);
    Issued { value: BASE64_URL_SAFE_NO_PAD.encode(value), lasts: pass.until.since(now) }
}

fn mac(key: &Key, purpose: &[u8], bytes: &[u8]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    // The purpose keeps a tag that was made for one use from being valid for another.
    mac.update(purpose);
    mac.update(&[0]);
    mac.update(bytes);
    mac
}

/// Makes a folder that only this user can enter.
pub(super) fn private_folder(folder: &Path) -> io::Result<()> {
    make_for_us(folder)
}

/// The key, unless there is none that can be trusted: others could read it, or it was cut short.
fn stored(path: &Path) -> io::Result<Option<Key>> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
        // Whatever it leads to is not what we wrote.
        Ok(found) if found.is_symlink() => return Ok(None),
        Ok(_) if open_to(path).is_some() => return Ok(None),
        Ok(_) => {}
    }
    // What has come into its place since is not followed either.
    let mut file = OpenOptions::new().read(true).no_link().open(path)?;
    let mut bytes = Vec::new();
    (&mut file).take(size_of::<Key>() as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes.try_into().ok())
}

/// Puts a fresh key in the place of the old one, whole or not at all.
fn replace(path: &Path) -> io::Result<Key> {
    let key: Key = rand::random();
    talaria_machine::replace(path, &key, Mode::PRIVATE)?;
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_cannot_be_read_is_not_taken_for_one_that_is_not_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("login.key");
        assert_eq!(stored(&path).unwrap(), None);
        let key = replace(&path).unwrap();
        assert_eq!(stored(&path).unwrap(), Some(key));
        // Nothing is below a file.
        assert!(stored(&path.join("login.key")).is_err());
        std::fs::write(&path, [7; size_of::<Key>() + 1]).unwrap();
        assert_eq!(stored(&path).unwrap(), None, "it is longer than one of ours");
    }

    #[cfg(unix)]
    #[test]
    fn a_key_that_a_link_leads_to_is_none_of_ours_and_is_not_written_through() {
        let folder = tempfile::tempdir().unwrap();
        let (path, planted) = (folder.path().join("login.key"), folder.path().join("planted"));
        let known = replace(&planted).unwrap();
        std::os::unix::fs::symlink(&planted, &path).unwrap();
        assert_eq!(stored(&path).unwrap(), None);
        let key = replace(&path).unwrap();
        assert_eq!(stored(&path).unwrap(), Some(key));
        assert_eq!(stored(&planted).unwrap(), Some(known), "it is as it was");
    }
}
