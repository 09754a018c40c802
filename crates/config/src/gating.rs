//! Who is an administrator because nobody is named as one.

use std::collections::BTreeSet;

use crate::access::{AccountAccess, Doors, RoomAccess};
use crate::conversations::{AdminsUnlessNamed, CommandSettings};

/// A kind of chat in which more than one person is an administrator because nobody is named as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ungated {
    /// As people are told.
    room: &'static str,
    /// Where administrators would be named.
    setting: &'static str,
    who: String,
}

impl Ungated {
    /// Where that is so on an account.
    pub fn rooms(
        access: &AccountAccess,
        direct: &CommandSettings,
        group: &CommandSettings,
    ) -> Vec<Self> {
        let rooms = [
            ("direct chats", &access.direct, direct, "allow_admin_from"),
            ("groups", &access.group, group, "group_allow_admin_from"),
        ];
        let found = rooms.into_iter().filter_map(|(room, heard, commands, setting)| {
            let who = admins_without_a_name(access, heard, commands)?;
            Some(Self { room, setting, who })
        });
        found.collect()
    }

    /// What is wrong on the account of this name.
    pub fn problem(&self, account: &str) -> String {
        let Self { room, who, .. } = self;
        format!(
            "command gating is off in {room} of {account}: {who} are administrators, who may restart and \
             reload the gateway"
        )
    }

    /// What to do about it.
    pub fn hint(&self, account: &str) -> String {
        format!("name the administrators in accounts.{account}.{}", self.setting)
    }
}

/// Who they are. That the only one who is named is an administrator surprises nobody.
fn admins_without_a_name(
    access: &AccountAccess,
    heard: &RoomAccess,
    commands: &CommandSettings,
) -> Option<String> {
    if !commands.admins.is_empty() || heard.doors == Doors::Closed {
        return None;
    }
    match commands.unnamed {
        AdminsUnlessNamed::Listed if !heard.roles.is_empty() => {
            Some("all who have a role that it lets in".to_owned())
        }
        AdminsUnlessNamed::Everyone => Some("all who are heard, by whatever rule,".to_owned()),
        AdminsUnlessNamed::Listed => {
            let named = access.allow.iter().chain(&access.general).chain(&heard.allow);
            let many = named.collect::<BTreeSet<_>>().len();
            (many > 1).then(|| format!("all {many} who are named"))
        }
    }
}
