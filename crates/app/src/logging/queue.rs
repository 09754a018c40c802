//! Lines on their way to where they are written. Whoever logs never waits for a disk or a pipe: a thread
//! writes, and what comes faster than it can is lost and counted.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

/// Lines that wait. With the longest ones, that is 16 MiB.
const WAITING: usize = 1024;

/// Where lines are put.
pub(super) struct Queue {
    words: SyncSender<Word>,
    lost: Arc<AtomicU64>,
}

/// The other end of it.
pub(super) struct Waiting {
    words: Receiver<Word>,
    lost: Arc<AtomicU64>,
}

enum Word {
    Line(Vec<u8>),
    /// Everything before this has been written.
    Mark(SyncSender<()>),
}

pub(super) fn queue() -> (Queue, Waiting) {
    let (sender, words) = sync_channel(WAITING);
    let lost = Arc::new(AtomicU64::new(0));
    (Queue { words: sender, lost: lost.clone() }, Waiting { words, lost })
}

impl Queue {
    /// Puts a line behind the others, unless too many wait.
    pub(super) fn put(&self, line: Vec<u8>) {
        if self.words.try_send(Word::Line(line)).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until everything is written that was put before, but not longer than this.
    pub(super) fn flush(&self, within: Duration) {
        let (done, written) = sync_channel(1);
        // Where so much waits that this finds no room, it would not be written in time.
        if self.words.try_send(Word::Mark(done)).is_ok() {
            let _ = written.recv_timeout(within);
        }
    }
}

impl Waiting {
    /// Writes every line on a thread of its own; `note` is the line that says how many were lost.
    pub(super) fn write_with(
        self,
        name: &str,
        note: fn(u64) -> String,
        mut write: impl FnMut(&[u8]) + Send + 'static,
    ) -> io::Result<()> {
        let Self { words, lost } = self;
        let work = move || {
            for word in words {
                match word {
                    Word::Line(line) => write(&line),
                    // Whoever waits may be gone.
                    Word::Mark(done) => drop(done.try_send(())),
                }
                match lost.swap(0, Ordering::Relaxed) {
                    0 => {}
                    many => write(note(many).as_bytes()),
                }
            }
        };
        std::thread::Builder::new().name(name.to_owned()).spawn(work).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::channel;

    use super::*;

    const SOON: Duration = Duration::from_secs(10);

    fn note(many: u64) -> String {
        format!("{many} lost")
    }

    #[test]
    fn whoever_logs_does_not_wait_for_a_disk_that_hangs_and_what_is_lost_is_counted() {
        let (queue, waiting) = queue();
        let written = Arc::new(Mutex::new(Vec::new()));
        let (goes_on, hangs) = channel::<()>();
        let page = written.clone();
        let mut hung = false;
        waiting
            .write_with("a disk", note, move |line| {
                if !std::mem::replace(&mut hung, true) {
                    let _ = hangs.recv();
                }
                page.lock().unwrap().push(String::from_utf8_lossy(line).into_owned());
            })
            .unwrap();
        // One may be in its hand already.
        let many = WAITING + 1 + 500;
        for n in 0..many {
            queue.put(format!("line {n}").into_bytes());
        }
        goes_on.send(()).unwrap();
        // There is room for this one some time, and then everything before it is written.
        let (done, all) = sync_channel(1);
        queue.words.send(Word::Mark(done)).unwrap();
        all.recv_timeout(SOON).unwrap();
        queue.flush(SOON);
        let written = written.lock().unwrap();
        let lost: Vec<_> = written.iter().filter(|line| line.ends_with("lost")).collect();
        let lines = written.iter().filter(|line| line.starts_with("line")).count();
        assert_eq!(lost.len(), 1, "{lost:?}");
        let lost: usize = lost[0].trim_end_matches(" lost").parse().unwrap();
        assert!(lost >= 500, "{lost}");
        assert_eq!(lines + lost, many);
    }

    #[test]
    fn what_is_put_before_anybody_writes_is_written_when_somebody_does() {
        let (queue, waiting) = queue();
        queue.put(b"early".to_vec());
        queue.flush(Duration::ZERO);
        let (tell, told) = channel();
        let writes = move |line: &[u8]| tell.send(line.to_vec()).unwrap();
        waiting.write_with("later", note, writes).unwrap();
        queue.put(b"late".to_vec());
        assert_eq!(told.recv_timeout(SOON).unwrap(), b"early");
        assert_eq!(told.recv_timeout(SOON).unwrap(), b"late");
    }
}
