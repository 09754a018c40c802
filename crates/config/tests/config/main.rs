//! Configuration, through its public interface.

mod conventions;
mod conversations;
mod destinations;
mod documents;
mod doors;
mod files;
mod messages;
mod network;
mod people;
mod platforms;
mod secrets;
mod shown;
mod speaking;
mod telemetry;
mod values;
mod voice;

use talaria_config::{Loaded, Problems, Sources, load};

/// Loads a file and variables, each written like `NAME=value`.
fn try_load(yaml: &str, variables: &[&str]) -> Result<Loaded, Problems> {
    load(sources(yaml, variables), &platforms::ALL)
}

fn loaded(yaml: &str, variables: &[&str]) -> Loaded {
    try_load(yaml, variables).unwrap_or_else(|problems| panic!("{yaml:?}:\n{problems}"))
}

fn problems(yaml: &str, variables: &[&str]) -> String {
    match try_load(yaml, variables) {
        Err(problems) => problems.to_string(),
        Ok(_) => panic!("{yaml:?} {variables:?} was accepted"),
    }
}

fn sources(yaml: &str, variables: &[&str]) -> Sources {
    variables.iter().fold(Sources::default().with_config(yaml), |sources, variable| {
        let (name, value) = variable.split_once('=').expect("a variable is NAME=value");
        sources.with_variable(name, value)
    })
}
