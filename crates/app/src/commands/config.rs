//! `talaria config`: what is set, where, and what could be.

use talaria_config::{Explanation, Origin, SettingExplanation};

use super::{print_json, table::table};
use crate::cli::ConfigCommand;
use crate::exit::{Exit, Halt};
use crate::home::Home;
use crate::start;

pub(crate) fn config(home: &Home, command: ConfigCommand) -> Result<Exit, Halt> {
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
                print!("{}", table(&["SETTING", "VALUE", "FROM"], &rows));
            }
        }
        ConfigCommand::Explain { key, output } => {
            let loaded = start::configuration(home)?;
            let explanation = loaded.explain(&key).map_err(|unknown| {
                let halt = Halt::new(Exit::Misused, &unknown);
                match &unknown.suggestion {
                    Some(suggestion) => halt.hint(format_args!("did you mean {suggestion}?")),
                    None => halt.hint("`talaria config show` lists every setting"),
                }
            })?;
            if output.json {
                print_json(&explanation)?;
            } else {
                print_explanation(&explanation);
            }
        }
        ConfigCommand::Check(output) => {
            let loaded = start::configuration(home)?;
            if output.json {
                print_json(&loaded.warnings())?;
            } else {
                for warning in loaded.warnings() {
                    println!("warning: {warning}");
                }
                println!("The configuration is good.");
            }
        }
    }
    Ok(Exit::Done)
}

fn print_explanation(explanation: &Explanation) {
    match explanation {
        Explanation::Setting(setting) => print_setting(setting),
        Explanation::Section { path, help, settings } => {
            println!("{path}\n{help}\n");
            for line in settings {
                println!("  {} = {} ({})", line.path, line.value, line.origin);
            }
        }
    }
}

fn print_setting(setting: &SettingExplanation) {
    println!("{} = {}", setting.path, setting.value);
    println!("  from       {}", setting.origin);
    for overridden in &setting.overridden {
        println!("  instead of {} from {}", overridden.value, overridden.origin);
    }
    if !matches!(setting.origin, Origin::Default) {
        println!("  default    {}", setting.default);
    }
    println!("  takes      {}", setting.takes);
    println!("  variable   {}", setting.variable);
    println!("\n{}", setting.help);
}
