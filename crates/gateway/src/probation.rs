//! Accounts with new settings, which go back to their old ones when they turn out not to be heard.

use std::collections::BTreeMap;
use std::time::Duration;

use talaria_clock::Mark;
use talaria_model::AccountId;

use crate::{AccountPlan, AccountState, AccountStatus, Gateway};

/// How long an account with new settings is watched. Deafness takes a minute to be noticed.
const LASTS: Duration = Duration::from_secs(150);

/// Accounts whose new settings have not proved themselves yet.
#[derive(Default)]
pub struct Probation {
    accounts: BTreeMap<AccountId, Trial>,
}

struct Trial {
    back: AccountPlan,
    until: Mark,
    /// How often the account had been deaf before.
    deafnesses: u32,
}

impl Probation {
    /// An account is connected with new settings; these are the ones before.
    pub fn begin(&mut self, gateway: &Gateway, back: AccountPlan) {
        let known = gateway.accounts().into_iter().find(|account| account.id == back.id);
        if let Some(AccountStatus { id, deafnesses, .. }) = known {
            let until = gateway.clock().mark() + LASTS;
            self.accounts.insert(id, Trial { back, until, deafnesses });
        }
    }

    /// Whether nobody is watched.
    pub fn is_empty(&self) -> bool {
        self.accounts.is_empty()
    }

    /// An account is not watched any more; says how it was set up before.
    pub fn end(&mut self, account: &AccountId) -> Option<AccountPlan> {
        self.accounts.remove(account).map(|trial| trial.back)
    }

    /// An account that does not work with its new settings: how it was set up before, and what is wrong.
    /// Deafness counts however short it was and whenever this is asked. Who has passed is forgotten.
    pub fn failed(&mut self, gateway: &Gateway) -> Option<(AccountPlan, AccountState)> {
        let failed = gateway.accounts().into_iter().find_map(|status| {
            let trial = self.accounts.get(&status.id)?;
            match status.state {
                AccountState::Deaf { .. }
                | AccountState::Refused { .. }
                | AccountState::Fatal { .. } => Some((status.id, status.state)),
                _ if status.deafnesses > trial.deafnesses => {
                    let reason = "it was connected and not heard".to_owned();
                    Some((status.id, AccountState::Deaf { reason }))
                }
                _ => None,
            }
        });
        let Some((id, state)) = failed else {
            let now = gateway.clock().mark();
            self.accounts.retain(|_, trial| now < trial.until);
            return None;
        };
        self.end(&id).map(|back| (back, state))
    }
}
