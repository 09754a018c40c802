//! `talaria backup`: takes backups, checks them, and goes back to them.

use super::print_json;
use crate::backup::{self, About};
use crate::cli::BackupCommand;
use crate::exit::{Exit, Halt};
use crate::home::Home;

pub(crate) fn backup(home: &Home, command: BackupCommand) -> Result<Exit, Halt> {
    match command {
        BackupCommand::Create { to, output } => {
            let packed = backup::pack(home, to)?;
            if output.json {
                print_json(&packed)?;
                return Ok(Exit::Done);
            }
            say!(
                "{}\n{} files, {}. It contains your secrets and everything that was said.",
                packed.file.display(),
                packed.members,
                size(packed.bytes)
            );
            for left_out in &packed.left_out {
                say!("left out: {left_out}");
            }
        }
        BackupCommand::Verify { file, output } => {
            let checked = backup::verify(home, &file)?;
            if output.json {
                print_json(&checked)?;
                return Ok(Exit::Done);
            }
            say!(
                "{} is whole: {}, {} files, {} unpacked.",
                file.display(),
                of(&checked.about),
                checked.members,
                size(checked.bytes)
            );
        }
        BackupCommand::Restore { file, output } => {
            let restored = backup::restore(home, &file)?;
            if output.json {
                print_json(&restored)?;
                return Ok(Exit::Done);
            }
            say!("{} is as it was: {}.", home.path().display(), of(&restored.from.about));
            if let Some(replaced) = &restored.replaced {
                say!("What was there is in {}. Remove that when you are sure.", replaced.display());
            }
        }
    }
    Ok(Exit::Done)
}

fn of(about: &About) -> String {
    let About { talaria, schema, created, .. } = about;
    let schema = schema.map_or("no database".into(), |schema| format!("database version {schema}"));
    format!("taken {created} by talaria {talaria}, {schema}")
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}
