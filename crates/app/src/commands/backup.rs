//! `talaria backup`: takes backups, checks them, and goes back to them.

use talaria_store_sqlite::{Since, WentBack};

use super::print_json;
use crate::backup::{self, About, Restored};
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
            tell_what_is_void(&restored)?;
        }
    }
    Ok(Exit::Done)
}

/// Says what did not come back, and who did although nobody knows whether they should.
fn tell_what_is_void(restored: &Restored) -> Result<(), Halt> {
    say!("Everybody is logged out of the web page; `talaria open` prints a new link.");
    if let Some(void) = &restored.void {
        let WentBack { since, codes, approvals, asked_again, put_out, let_in } = void;
        say!(
            "Void: pairing codes and requests ({codes}), open approvals ({approvals}), lasting approvals \
             ({asked_again})."
        );
        if !put_out.is_empty() {
            say!("Let in by the backup and not by now, so they stay out:");
            name(put_out)?;
        }
        if let Since::Unknown(why) = since {
            say!("What happened since the backup was taken is not known: {why}.");
            match let_in.is_empty() {
                true => say!("Nobody is let in by pairing in it."),
                false => {
                    say!(
                        "These are let in by it, even if they were put out since; `talaria pair revoke \
                         ACCOUNT ID` puts one out:"
                    );
                    name(let_in)?;
                }
            }
        }
    }
    if !restored.listed.is_empty() {
        say!("These are let in by its settings (config.yaml, .env) and were not by yours:");
        name(&restored.listed)?;
    }
    Ok(())
}

fn name(people: &[String]) -> Result<(), Halt> {
    for somebody in people {
        say!("    {}", talaria_render::visible(somebody));
    }
    Ok(())
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
