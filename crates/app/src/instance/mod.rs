//! Which process is the gateway of a home, and how another one takes its place.
//!
//! The lock in `home` decides who may run. What is written here only tells who that is and what the
//! ending of it was planned for; a lie in it can make nobody lose anything.

pub(crate) mod marker;
mod record;
pub(crate) mod starts;
mod takeover;

pub(crate) use record::{Kind, Record, Recorded};
pub(crate) use takeover::{ask_to_end, take_over};

use std::time::Duration;

use talaria_clock::{Clock, SystemClock};

use crate::exit::{Exit, Halt};
use crate::home::{Home, HomeLock};

/// How long a start waits for somebody who has the home and is no gateway: a command that reads the store
/// lets go of it soon.
const PATIENCE: Duration = Duration::from_secs(3);

/// How often it is looked again.
const LOOK: Duration = Duration::from_millis(20);

/// Takes the home for this process. A gateway that has it is not waited for.
pub(crate) async fn lock(home: &Home) -> Result<HomeLock, Halt> {
    let begun = SystemClock.mark();
    loop {
        match home.lock() {
            Err(halt) if halt.exit == Exit::AlreadyRunning => {
                let waited = SystemClock.mark().since(begun);
                if Record::live(home).is_some() || waited >= PATIENCE {
                    return Err(halt);
                }
                SystemClock.sleep(LOOK).await;
            }
            taken => return taken,
        }
    }
}
