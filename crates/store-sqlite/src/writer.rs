//! The writer: one thread with the only connection that writes.
//!
//! It takes everything that is queued, runs it in one transaction, commits once and then answers
//! all: the price of making it durable is shared by whoever writes at the same time, and nobody
//! waits for company. The queue has room for a thousand; whoever finds it full waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::hooks::Wal;
use talaria_store::StoreError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::sql::store_error;

/// How many writes may be queued.
const ROOM: usize = 1024;

/// How many writes share a commit at most.
const GROUP: usize = 256;

/// The log is carried over into the file whenever it has grown by so many pages: 4 MiB. It then
/// begins anew, unless somebody is reading from it just then.
const LOG_PAGES: i32 = 1024;

/// After this long without a write, what is left in the log is carried over.
const QUIET: Duration = Duration::from_secs(1);

/// Where writes are handed in. Dropping it waits until they are done.
pub(crate) struct Writer {
    jobs: Option<Sender<Job>>,
    room: Arc<Semaphore>,
    thread: Option<JoinHandle<()>>,
}

enum Job {
    Write(Write),
    Tidy(oneshot::Sender<()>),
}

/// Runs in a transaction, or is told why there is none.
type Write = Box<dyn FnOnce(Result<&Connection, StoreError>) -> Ran + Send>;

/// A write that ran. It is answered once it is known whether its group was committed.
struct Ran {
    failed: Option<StoreError>,
    answer: Box<dyn FnOnce(Result<(), StoreError>) + Send>,
}

impl Writer {
    pub(crate) fn start(conn: Connection) -> std::io::Result<Self> {
        let (jobs, queue) = channel();
        let mut desk = Desk { conn, queue, log_pages: Arc::default(), carried_over: 0 };
        let thread =
            std::thread::Builder::new().name("store-writer".into()).spawn(move || desk.run())?;
        Ok(Self { jobs: Some(jobs), room: Arc::new(Semaphore::new(ROOM)), thread: Some(thread) })
    }

    /// Runs `work` in a transaction and returns once it is on disk. If it fails, nothing of it is
    /// written. A caller that stops waiting does not take it back.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let room = self.room.clone().acquire_owned().await.map_err(|_| stopped())?;
        let (sender, answer) = oneshot::channel();
        let write = |conn: Result<&Connection, StoreError>| conn.and_then(work);
        self.hand_in(Job::Write(Box::new(move |conn| answering(write(conn), sender, room))))?;
        answer.await.unwrap_or_else(|_| Err(stopped()))
    }

    /// Carries the log over into the file and leaves it small.
    pub(crate) async fn tidy(&self) -> Result<(), StoreError> {
        let (sender, done) = oneshot::channel();
        self.hand_in(Job::Tidy(sender))?;
        done.await.map_err(|_| stopped())
    }

    fn hand_in(&self, job: Job) -> Result<(), StoreError> {
        self.jobs.as_ref().ok_or_else(stopped)?.send(job).map_err(|_| stopped())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // It panicked, and whoever was waiting for it has been told that it stopped.
            drop(thread.join());
        }
    }
}

fn answering<T: Send + 'static>(
    result: Result<T, StoreError>,
    sender: oneshot::Sender<Result<T, StoreError>>,
    room: OwnedSemaphorePermit,
) -> Ran {
    Ran {
        failed: result.as_ref().err().cloned(),
        answer: Box::new(move |committed| {
            drop(room);
            // Whoever stopped waiting does not want to know.
            drop(sender.send(committed.and(result)));
        }),
    }
}

fn stopped() -> StoreError {
    StoreError::Unavailable { reason: "the writer has stopped".into() }
}

/// The writer's side of the queue.
struct Desk {
    conn: Connection,
    queue: Receiver<Job>,
    /// Pages in the log after the last commit.
    log_pages: Arc<AtomicI32>,
    /// How many of them are in the file.
    carried_over: i32,
}

impl Desk {
    fn run(&mut self) {
        self.count_log_pages();
        let mut writes = Vec::new();
        while let Some(job) = self.next() {
            let mut other = None;
            match job {
                Job::Write(write) => writes.push(write),
                Job::Tidy(sender) => other = Some(sender),
            }
            while other.is_none() && writes.len() < GROUP {
                match self.queue.try_recv() {
                    Ok(Job::Write(write)) => writes.push(write),
                    Ok(Job::Tidy(sender)) => other = Some(sender),
                    Err(_) => break,
                }
            }
            self.commit(&mut writes);
            if self.not_carried_over() > LOG_PAGES {
                self.carry_over("PASSIVE");
            }
            if let Some(sender) = other {
                self.tidy();
                // Whoever stopped waiting does not want to know.
                let _ = sender.send(());
            }
        }
    }

    /// Waits for work; none when the store is gone.
    fn next(&mut self) -> Option<Job> {
        if self.not_carried_over() > 0 {
            match self.queue.recv_timeout(QUIET) {
                Ok(job) => return Some(job),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => self.carry_over("PASSIVE"),
            }
        }
        self.queue.recv().ok()
    }

    /// One transaction for all, in which each write stands or falls for itself.
    fn commit(&self, writes: &mut Vec<Write>) {
        if writes.is_empty() {
            return;
        }
        let many = writes.len() > 1;
        let mut answers = Vec::with_capacity(writes.len());
        let mut transaction = self.run_sql("BEGIN IMMEDIATE");
        for write in writes.drain(..) {
            if many && transaction.is_ok() {
                transaction = self.run_sql("SAVEPOINT one");
            }
            let ran = write(transaction.as_ref().map(|()| &self.conn).map_err(StoreError::clone));
            if transaction.is_ok() {
                transaction = match ran.failed {
                    // A full disk, among others, makes SQLite give up the whole transaction.
                    Some(error) if self.conn.is_autocommit() => Err(error),
                    Some(_) if many => self.run_sql("ROLLBACK TO one"),
                    Some(_) => self.run_sql("ROLLBACK"),
                    None => Ok(()),
                };
                if many && transaction.is_ok() {
                    transaction = self.run_sql("RELEASE one");
                }
            }
            answers.push(ran.answer);
        }
        let committed = match transaction {
            Ok(()) if self.conn.is_autocommit() => Ok(()),
            Ok(()) => self.run_sql("COMMIT"),
            Err(error) => Err(error),
        };
        if !self.conn.is_autocommit()
            && let Err(error) = self.run_sql("ROLLBACK")
        {
            tracing::error!(%error, "a transaction of the store cannot be ended");
        }
        for answer in answers {
            answer(committed.clone());
        }
    }

    fn run_sql(&self, sql: &str) -> Result<(), StoreError> {
        let mut statement = self.conn.prepare_cached(sql).map_err(store_error)?;
        statement.execute([]).map(drop).map_err(store_error)
    }

    fn count_log_pages(&mut self) {
        let pages = self.log_pages.clone();
        // Replaces SQLite's own habit of carrying the log over inside a commit.
        let hooked = self.conn.wal_hook(Some(move |_: &mut Wal, log: i32| {
            pages.store(log, Ordering::Relaxed);
            Ok(())
        }));
        if let Err(error) = hooked {
            tracing::warn!(%error, "the log of the store is carried over by SQLite itself");
        }
    }

    fn not_carried_over(&mut self) -> i32 {
        let pages = self.log_pages.load(Ordering::Relaxed);
        if pages < self.carried_over {
            // It began anew.
            self.carried_over = 0;
        }
        pages - self.carried_over
    }

    fn carry_over(&mut self, how: &str) {
        let carried = self.conn.query_row(&format!("PRAGMA wal_checkpoint({how})"), [], |_| Ok(()));
        if let Err(error) = carried {
            tracing::warn!(%error, "the log of the store cannot be carried over");
        }
        // Also when it could not be: the next try comes when the log has grown as much again.
        self.carried_over = self.log_pages.load(Ordering::Relaxed);
    }

    fn tidy(&mut self) {
        if let Err(error) = self.conn.execute_batch("PRAGMA optimize") {
            tracing::warn!(%error, "the store is not optimized");
        }
        self.carry_over("TRUNCATE");
    }
}
