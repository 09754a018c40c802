//! `talaria people`: whom the operator knows by name, and who has spent how much today.

use serde::Serialize;
use talaria_admin::api;
use talaria_clock::{Clock, SystemClock};
use talaria_session::budget::Spent;

use super::pair::Source;
use super::{print_json, table::table};
use crate::cli::Output;
use crate::exit::{Exit, Halt};
use crate::home::Home;
use crate::{people, start};

/// What is told.
#[derive(Serialize)]
struct People {
    people: Vec<Known>,
    others: Vec<api::Spending>,
}

/// Somebody whom the operator knows by name.
#[derive(Serialize)]
struct Known {
    name: String,
    role: Option<String>,
    identities: Vec<String>,
    today: api::Spent,
    budget: api::Budget,
}

pub(crate) async fn people(home: &Home, output: Output) -> Result<Exit, Halt> {
    let loaded = start::configuration(home)?;
    let config = loaded.config();
    let (_lock, source) = Source::find(home).await?;
    let rows = source.spending(people::today(config, SystemClock.now())).await?;
    let (persons, others): (Vec<_>, Vec<_>) =
        rows.into_iter().partition(|row| row.kind == api::PayerKind::Person);
    let known = config.people.iter().map(|(name, settings)| {
        let spent = persons.iter().find(|row| row.name == *name);
        let budget = people::budget_of(config, settings.role.as_deref());
        Known {
            name: name.clone(),
            role: settings.role.clone(),
            identities: settings.identities.clone(),
            today: spent.map(|row| row.spent).unwrap_or_default(),
            budget: api::Budget {
                messages: budget.messages,
                tokens: budget.tokens,
                cost_micros: budget.micros,
            },
        }
    });
    let told = People { people: known.collect(), others };
    if output.json {
        print_json(&told)?;
        return Ok(Exit::Done);
    }
    match told.people.is_empty() {
        true => say!("Nobody is in `people`; see docs/people.md."),
        false => {
            let rows: Vec<_> = told.people.iter().map(|known| row(config, known)).collect();
            let titles = ["PERSON", "ROLE", "TODAY", "A DAY", "IDENTITIES"];
            say!("{}", table(&titles, &rows).trim_end());
        }
    }
    if !told.others.is_empty() {
        let cells = |row: &api::Spending| {
            let kind = match row.kind {
                api::PayerKind::Person => "person",
                api::PayerKind::Sender => "sender",
                api::PayerKind::Chat => "chat",
            };
            let who = match row.account.is_empty() {
                true => row.name.clone(),
                false => format!("{}/{}", row.account, row.name),
            };
            [kind, &who, &spent(row.spent).told()].map(str::to_owned).to_vec()
        };
        let rows: Vec<_> = told.others.iter().map(cells).collect();
        say!("\n{}", table(&["OTHERS", "", "TODAY"], &rows).trim_end());
    }
    Ok(Exit::Done)
}

fn row(config: &talaria_config::Config, known: &Known) -> Vec<String> {
    let budget = people::budget_of(config, known.role.as_deref()).told();
    let budget = budget.unwrap_or_else(|| "no limit".to_owned());
    let role = known.role.as_deref().unwrap_or("-");
    let identities = known.identities.join(", ");
    [&known.name, role, &spent(known.today).told(), &budget, &identities]
        .map(str::to_owned)
        .to_vec()
}

fn spent(spent: api::Spent) -> Spent {
    Spent { messages: spent.messages, tokens: spent.tokens, micros: spent.cost_micros }
}
