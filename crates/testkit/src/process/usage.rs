//! What a process uses, as the kernel counts it.

use std::time::Duration;

use anyhow::Context;
use nix::unistd::{SysconfVar, sysconf};

/// What a process uses.
#[derive(Debug, Clone, Copy, Default)]
pub struct Usage {
    /// Bytes of memory at the moment.
    pub resident: u64,
    /// The most bytes of memory it had.
    pub most_resident: u64,
    /// Processor time of all its threads, so far.
    pub processor: Duration,
}

impl Usage {
    /// Reads it for a running process.
    pub fn of(pid: u32) -> anyhow::Result<Self> {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status"))
            .context("the process has ended")?;
        let kilobytes = |name: &str| -> Option<u64> {
            let line = status.lines().find(|line| line.starts_with(name))?;
            line.split_whitespace().nth(1)?.parse().ok()
        };
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
        // The name in parentheses may contain spaces; the fields count from behind it.
        let fields: Vec<&str> =
            stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
        let ticks = |place: usize| fields.get(place).and_then(|field| field.parse::<u64>().ok());
        let spent = ticks(11).zip(ticks(12)).context("the kernel counts no time")?;
        let per_second = sysconf(SysconfVar::CLK_TCK)?.unwrap_or(100);
        let processor = (spent.0 + spent.1) as f64 / per_second as f64;
        Ok(Self {
            resident: kilobytes("VmRSS:").unwrap_or(0) * 1024,
            most_resident: kilobytes("VmHWM:").unwrap_or(0) * 1024,
            processor: Duration::from_secs_f64(processor),
        })
    }
}
