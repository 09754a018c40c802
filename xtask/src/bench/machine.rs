//! The machine in a sentence, without its name.

use std::path::Path;

pub(super) fn description(root: &Path) -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let model = field("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown".into());
    let memory = field("/proc/meminfo", "MemTotal")
        .and_then(|total| total.split_whitespace().next()?.parse::<u64>().ok())
        .map_or_else(String::new, |kilobytes| format!(", {} GB of memory", kilobytes / 1_000_000));
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let kernel = kernel.split(['-', '\n']).next().unwrap_or_default().to_owned();
    let disk = file_system(root).map_or_else(String::new, |kind| format!(", {kind}"));
    let virtual_machine = match field("/proc/cpuinfo", "flags") {
        Some(flags) if flags.split_whitespace().any(|flag| flag == "hypervisor") => {
            ", a virtual machine"
        }
        _ => "",
    };
    format!("Machine: {cores} cores ({model}){memory}{disk}, Linux {kernel}{virtual_machine}.")
}

fn field(file: &str, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The kind of file system that a path is on: that of the longest mount point above it.
fn file_system(path: &Path) -> Option<String> {
    let mounts = std::fs::read_to_string("/proc/mounts").ok()?;
    let mounted = mounts.lines().filter_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        Some((fields.next()?, fields.next()?))
    });
    let above = mounted.filter(|(place, _)| path.starts_with(place));
    above.max_by_key(|(place, _)| place.len()).map(|(_, kind)| kind.to_owned())
}
