//! Who is heard. Deny by default: an empty list is nobody.

use std::collections::BTreeSet;

use talaria_model::{Inbound, SenderId, Standing};

/// Who an account listens to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// The platform has authenticated the operator before an event leaves it.
    Operator,
    /// These senders, and those for whom the platform vouches because of a role that the account
    /// names.
    Only(BTreeSet<SenderId>),
    /// Whoever can write to the account.
    Everyone,
}

/// Whether an event is let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It goes to its session.
    Admit,
    /// It is recorded and goes nowhere.
    Deny(Deny),
}

/// Why an event is not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deny {
    /// The sender is not on the account's list.
    NotListed,
}

impl Deny {
    /// As it is recorded beside the event.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::NotListed => "the sender is not on the account's allow list",
        }
    }
}

impl Access {
    /// Decides by the sender's immutable id, or by what the platform itself says of a role. Never by a
    /// name.
    pub fn admit(&self, inbound: &Inbound) -> Admission {
        match self {
            Self::Operator | Self::Everyone => Admission::Admit,
            Self::Only(listed) if listed.contains(&inbound.from.id) => Admission::Admit,
            Self::Only(_) if inbound.source.standing == Standing::ByRole => Admission::Admit,
            Self::Only(_) => Admission::Deny(Deny::NotListed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::said;

    #[test]
    fn an_empty_list_is_nobody_and_a_name_is_not_an_id() {
        let hello = said("alice", "hello");
        assert_eq!(Access::Only(BTreeSet::new()).admit(&hello), Admission::Deny(Deny::NotListed));
        assert_eq!(
            Access::Only(BTreeSet::from([SenderId::literal("Alice")])).admit(&hello),
            Admission::Deny(Deny::NotListed)
        );
        assert_eq!(
            Access::Only(BTreeSet::from([SenderId::literal("alice")])).admit(&hello),
            Admission::Admit
        );
        assert_eq!(Access::Everyone.admit(&hello), Admission::Admit);
        let mut vouched = hello;
        vouched.source.standing = Standing::ByRole;
        assert_eq!(Access::Only(BTreeSet::new()).admit(&vouched), Admission::Admit);
    }
}
