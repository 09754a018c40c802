//! A question that lets something happen: what exactly, and for how long the answer holds.
//!
//! Nothing here knows what it is that happens. Whoever wants it done names it by a digest of all that it
//! is made of, and may do it only with an answer that carries the same digest.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::{AccountId, Choice, ChoiceId, RoleId, SenderId, Timestamp};

/// Stands for something whole: two things with the same digest are the same thing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest that a hash function gave.
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// What the hash function gave.
    pub const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Enough to tell two apart.
        self.0.iter().take(4).try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A text that is not a digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a digest is 64 hexadecimal digits")]
pub struct NotADigest;

impl FromStr for Digest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Self, NotADigest> {
        let digits = text.as_bytes();
        if digits.len() != 64 || !digits.iter().all(u8::is_ascii_hexdigit) {
            return Err(NotADigest);
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| NotADigest)?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| NotADigest)?;
        }
        Ok(Self(bytes))
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

/// What a question lets happen when it is answered with yes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    /// Names this question and no other; its buttons carry it. Nobody can guess it.
    pub handle: String,
    /// What happens, whole: who does what with what, for whom and where.
    pub digest: Digest,
    /// What does it, by name.
    pub tool: String,
    /// Whether the answer can hold for good.
    pub lasting: Lasting,
    /// Whether somebody who may approve it at this moment has done so for the rest of the conversation.
    #[serde(default)]
    pub earlier: EarlierYes,
    /// Whether whoever may approve it can be where it is asked.
    #[serde(default)]
    pub approver: Approver,
}

/// Whether whoever may approve something can be where it is asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approver {
    /// They can, or nobody has looked.
    #[default]
    MayBeThere,
    /// They cannot: it is an administrator's to approve, and nobody is there but somebody who is none.
    Absent,
}

/// Whether a yes that was given for the rest of a conversation counts at this moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EarlierYes {
    /// It does.
    Counts,
    /// It does not, or nobody has looked.
    #[default]
    CountsNot,
}

/// Whether an approval can hold for good. The digest stands for the same thing wherever it happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lasting {
    /// It cannot: what does it can do anything.
    Never,
    /// It can.
    Possible(Digest),
    /// It does: the person has said so before.
    Granted(Digest),
}

/// How long a yes holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Consent {
    /// For what was asked about, once.
    Once,
    /// For exactly the same, as long as the conversation lasts.
    Session,
    /// For exactly the same, until it is revoked.
    Always,
}

/// What an answer means to an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Yes, for so long.
    Approve(Consent),
    /// No.
    Deny,
}

impl Verdict {
    const ALL: [Self; 4] = [
        Self::Approve(Consent::Once),
        Self::Approve(Consent::Session),
        Self::Approve(Consent::Always),
        Self::Deny,
    ];

    const fn word(self) -> &'static str {
        match self {
            Self::Approve(Consent::Once) => "once",
            Self::Approve(Consent::Session) => "session",
            Self::Approve(Consent::Always) => "always",
            Self::Deny => "deny",
        }
    }

    const fn label(self) -> &'static str {
        match self {
            Self::Approve(Consent::Once) => "Approve once",
            Self::Approve(Consent::Session) => "Approve in this conversation",
            Self::Approve(Consent::Always) => "Always approve exactly this",
            Self::Deny => "Deny",
        }
    }
}

impl Approval {
    /// Whether this can be the answer.
    fn offers(&self, verdict: Verdict) -> bool {
        verdict != Verdict::Approve(Consent::Always) || self.lasting != Lasting::Never
    }

    /// The answers that people choose from. None of them is given by doing nothing.
    pub fn choices(&self) -> Vec<Choice> {
        let offered = Verdict::ALL.into_iter().filter(|verdict| self.offers(*verdict));
        offered
            .filter_map(|verdict| {
                let id = ChoiceId::new(format!("{}.{}", self.handle, verdict.word())).ok()?;
                Some(Choice { id, label: verdict.label().to_owned() })
            })
            .collect()
    }

    /// What a choice means. One of another question means nothing.
    pub fn verdict(&self, choice: &ChoiceId) -> Option<Verdict> {
        let word = choice.as_str().strip_prefix(&self.handle)?.strip_prefix('.')?;
        Verdict::ALL.into_iter().find(|verdict| verdict.word() == word && self.offers(*verdict))
    }
}

/// Somebody who has said yes: all by which it can be looked up whether they may say so at another moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Giver {
    /// Who.
    #[serde(rename = "by")]
    pub id: SenderId,
    /// Their roles on the platform, for which that vouched when they said it. Each counts as long as the account
    /// names it.
    #[serde(rename = "by_roles", default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<RoleId>,
}

impl Giver {
    /// Somebody who is known by their id alone.
    pub const fn known_by_id(id: SenderId) -> Self {
        Self { id, roles: Vec::new() }
    }
}

/// Something that a person has approved for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// What may happen, whole, wherever.
    pub digest: Digest,
    /// What does it, by name.
    pub tool: String,
    /// On which account.
    pub account: AccountId,
    /// In whose name it is done.
    pub sender: SenderId,
    /// Who approved it.
    #[serde(flatten)]
    pub by: Giver,
    /// What they were shown.
    pub shown: String,
    /// When.
    pub at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn approval(lasting: Lasting) -> Approval {
        let digest = Digest::new([7; 32]);
        Approval {
            handle: "ab".repeat(16),
            digest,
            tool: "pay".into(),
            lasting,
            earlier: EarlierYes::Counts,
            approver: Approver::MayBeThere,
        }
    }

    #[test]
    fn a_digest_is_read_as_it_is_written_and_nothing_else_is_one() {
        let digest = Digest::new(std::array::from_fn(|place| place as u8));
        assert_eq!(digest.to_string().parse(), Ok(digest));
        let json = serde_json::to_string(&digest).unwrap();
        assert_eq!(serde_json::from_str::<Digest>(&json).unwrap(), digest);
        let long = "0".repeat(66);
        for text in
            ["", "00", &long, &"g".repeat(64), &"é".repeat(32), &format!("+{}", &long[..63])]
        {
            assert_eq!(text.parse::<Digest>(), Err(NotADigest), "{text}");
        }
    }

    #[test]
    fn each_choice_means_what_it_says_and_only_on_its_own_question() {
        let asked = approval(Lasting::Possible(Digest::new([1; 32])));
        let meant: Vec<_> =
            asked.choices().iter().map(|choice| asked.verdict(&choice.id).unwrap()).collect();
        assert_eq!(meant, Verdict::ALL);
        let other = Approval { handle: "cd".repeat(16), ..asked.clone() };
        for choice in asked.choices() {
            assert_eq!(other.verdict(&choice.id), None);
        }
        for word in ["", ".", ".o", ".once ", "once", ".Once"] {
            let forged = ChoiceId::new(format!("{}{word}", asked.handle)).unwrap();
            assert_eq!(asked.verdict(&forged), None, "{word:?}");
        }
    }

    #[test]
    fn a_grant_names_the_roles_of_its_giver_and_one_without_is_read_by_their_id() {
        let old = format!(
            r#"{{"digest":"{}","tool":"pay","account":"main","sender":"alice","by":"bob","shown":"May I?","at":5}}"#,
            Digest::new([7; 32])
        );
        let grant: Grant = serde_json::from_str(&old).unwrap();
        assert_eq!(grant.by, Giver::known_by_id(SenderId::literal("bob")));
        assert_eq!(serde_json::to_string(&grant).unwrap(), old, "and written as it was");
        let by = Giver { roles: vec![RoleId::literal("chief")], ..grant.by.clone() };
        let grant = Grant { by, ..grant };
        let stored = serde_json::to_string(&grant).unwrap();
        assert_eq!(serde_json::from_str::<Grant>(&stored).unwrap(), grant);
    }

    #[test]
    fn what_cannot_last_is_not_offered_for_good_nor_taken_so() {
        let asked = approval(Lasting::Never);
        assert_eq!(asked.choices().len(), 3);
        let always = ChoiceId::new(format!("{}.always", asked.handle)).unwrap();
        assert_eq!(asked.verdict(&always), None);
    }
}
