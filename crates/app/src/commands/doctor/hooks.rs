//! Hooks: which are not used, and which cannot be run.

use std::sync::Arc;

use talaria_clock::SystemClock;
use talaria_hooks::Hooks;

use super::{Finding, Patient};

pub(super) fn look(patient: &Patient<'_>) -> Vec<Finding> {
    let hooks = Hooks::open(&patient.home.hooks(), crate::hooks::EVENTS, Arc::new(SystemClock));
    let refused = hooks.refused().iter().map(|refused| Finding::problem("hooks", refused));
    let mut findings: Vec<Finding> = refused.collect();
    let used = hooks.listed();
    for hook in &used {
        if let Some(missing) = hook.missing() {
            let text =
                format_args!("{} needs {missing}, which is not there", hook.name).to_string();
            findings.push(Finding::problem("hooks", text).hint(format_args!(
                "install {missing}, or correct the first line of {}",
                hook.program.display()
            )));
        }
    }
    if findings.is_empty() && !used.is_empty() {
        findings.push(Finding::good("hooks", format_args!("all {} can be run", used.len())));
    }
    findings
}
