//! Where the log goes: to standard error, so that standard output stays for answers.

use std::io::IsTerminal;

use talaria_config::{LogFormat, LogLevel, LogSettings};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// Starts logging. Libraries are heard from warnings on.
pub(crate) fn start(settings: &LogSettings) {
    let level = match settings.level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    begin(level, settings.format);
}

/// Logs errors only, for commands that talk to a person.
pub(crate) fn quiet() {
    begin(LevelFilter::ERROR, LogFormat::Text);
}

fn begin(level: LevelFilter, format: LogFormat) {
    let ours = level.into_level().map_or("off".to_owned(), |level| level.to_string());
    let filter = EnvFilter::builder()
        .with_default_directive(level.min(LevelFilter::WARN).into())
        .parse_lossy(format!("talaria={ours}"));
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    match format {
        LogFormat::Text => lines.with_target(false).compact().init(),
        LogFormat::Json => lines.json().init(),
    }
}
