//! `talaria config`: what is set, where, and what could be.

use std::sync::Arc;

use serde::Serialize;
use talaria_clock::{Clock, SystemClock};
use talaria_config::{Explanation, Origin, SettingExplanation, Sources};
use talaria_providers::Http;

use super::{control, print_json, table::table};
use crate::cli::{ConfigCommand, Output};
use crate::exit::{Exit, Halt};
use crate::home::Home;
use crate::{model, people, programs, start};

pub(crate) async fn config(home: &Home, command: ConfigCommand) -> Result<Exit, Halt> {
    match command {
        ConfigCommand::Schema => print_json(&talaria_config::schema(talaria_platforms::ALL))?,
        ConfigCommand::Show(output) => {
            let lines = start::configuration(home)?.show();
            if output.json {
                print_json(&lines)?;
            } else {
                let rows: Vec<_> = lines
                    .iter()
                    .map(|line| {
                        vec![line.path.clone(), line.value.to_string(), line.origin.to_string()]
                    })
                    .collect();
                super::write(format_args!("{}", table(&["SETTING", "VALUE", "FROM"], &rows)))?;
            }
        }
        ConfigCommand::Explain { key, output } => {
            // Whoever has to correct a configuration needs the explanation most.
            let loaded = start::configuration(home).or_else(|halt| {
                eprintln!("{halt}\n");
                talaria_config::load(Sources::default(), talaria_platforms::ALL).map_err(|_| halt)
            })?;
            let explanation = loaded.explain(&key).map_err(|unknown| {
                Halt::new(Exit::Misused, &unknown).hint("`talaria config show` lists every setting")
            })?;
            if output.json {
                print_json(&explanation)?;
            } else {
                print_explanation(&explanation)?;
            }
        }
        ConfigCommand::Check(output) => return check(home, output).await,
        ConfigCommand::Plan(output) => return control::plan(home, output).await,
        ConfigCommand::Apply(output) => return control::reload(home, output).await,
    }
    Ok(Exit::Done)
}

/// What a check found.
#[derive(Serialize)]
struct Checked {
    good: bool,
    problems: Vec<String>,
    warnings: Vec<String>,
}

/// Checks what a start would check: the settings, and that they name a model.
async fn check(home: &Home, output: Output) -> Result<Exit, Halt> {
    let checked = match Sources::read(home.path(), std::env::vars_os())
        .and_then(|sources| talaria_config::load(sources, talaria_platforms::ALL))
    {
        Ok(loaded) => {
            let clock: Arc<dyn Clock> = Arc::new(SystemClock);
            let http = Http::by(loaded.config().network.proxy.clone());
            let chosen = model::choice(&loaded, &http, &clock).await;
            let mut warnings = start::warnings(&loaded);
            let chain = chosen.as_ref().ok().map(|choice| &choice.chain);
            warnings.extend(chain.and_then(|chain| people::unpriced(loaded.config(), chain)));
            let mut problems: Vec<_> = chosen.err().iter().map(ToString::to_string).collect();
            problems.extend(programs::problems(&loaded).iter().map(ToString::to_string));
            Checked { good: problems.is_empty(), problems, warnings }
        }
        Err(wrong) => {
            let problems = wrong.iter().map(ToString::to_string).collect();
            let warnings = wrong.warnings().iter().map(ToString::to_string).collect();
            Checked { good: false, problems, warnings }
        }
    };
    if output.json {
        print_json(&checked)?;
    } else {
        for warning in &checked.warnings {
            say!("warning: {warning}");
        }
        for problem in &checked.problems {
            say!("{problem}");
        }
        if checked.good {
            say!("The configuration is good.");
        }
    }
    Ok(if checked.good { Exit::Done } else { Exit::Misused })
}

fn print_explanation(explanation: &Explanation) -> Result<(), Halt> {
    match explanation {
        Explanation::Setting(setting) => print_setting(setting)?,
        Explanation::Section { path, help, settings } => {
            say!("{path}\n{help}\n");
            for line in settings {
                say!("  {} = {} ({})", line.path, line.value, line.origin);
            }
        }
    }
    Ok(())
}

fn print_setting(setting: &SettingExplanation) -> Result<(), Halt> {
    say!("{} = {}", setting.path, setting.value);
    say!("  from       {}", setting.origin);
    for overridden in &setting.overridden {
        say!("  instead of {} from {}", overridden.value, overridden.origin);
    }
    if !matches!(setting.origin, Origin::Default) {
        say!("  default    {}", setting.default);
    }
    say!("  takes      {}", setting.takes);
    say!("  variable   {}", setting.variable);
    say!("\n{}", setting.help);
    Ok(())
}
