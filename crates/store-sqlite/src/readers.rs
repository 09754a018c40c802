//! The readers: a few threads with connections that only read.
//!
//! They see what is committed and nothing else. Threads of our own and not the runtime's blocking
//! pool, because a connection with its prepared statements stays where it is.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rusqlite::Connection;
use talaria_store::StoreError;
use tokio::sync::{Semaphore, oneshot};

use crate::open::{Purpose, connect};
use crate::sql::store_error;

/// One long read leaves a reader for the short ones.
const READERS: usize = 2;

/// How many reads may be queued; whoever finds the queue full waits.
const ROOM: usize = 1024;

/// Where reads are handed in. Dropping it waits until they are done.
pub(crate) struct Readers {
    queue: Arc<Queue>,
    room: Arc<Semaphore>,
    threads: Vec<JoinHandle<()>>,
}

type Read = Box<dyn FnOnce(Result<&Connection, StoreError>) + Send>;

#[derive(Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    arrived: Condvar,
}

#[derive(Default)]
struct Waiting {
    reads: VecDeque<Read>,
    readers: usize,
    closed: bool,
}

impl Readers {
    pub(crate) fn start(path: &Path) -> std::io::Result<Self> {
        let queue = Arc::new(Queue::default());
        queue.lock().readers = READERS;
        let threads = (0..READERS).map(|_| {
            let (queue, path) = (queue.clone(), path.to_owned());
            std::thread::Builder::new()
                .name("store-reader".into())
                .spawn(move || serve(&queue, &path))
        });
        let threads = threads.collect::<Result<_, _>>()?;
        Ok(Self { queue, room: Arc::new(Semaphore::new(ROOM)), threads })
    }

    /// Reads what is committed by now. All of it is of one moment, however many statements it takes.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let room = self.room.clone().acquire_owned().await.map_err(|_| stopped())?;
        let (sender, answer) = oneshot::channel();
        self.queue.push(Box::new(move |conn| {
            drop(room);
            // Whoever stopped waiting does not want to know.
            drop(sender.send(conn.and_then(|conn| {
                let _moment = conn.unchecked_transaction().map_err(store_error)?;
                work(conn)
            })));
        }))?;
        answer.await.unwrap_or_else(|_| Err(stopped()))
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.queue.lock().closed = true;
        self.queue.arrived.notify_all();
        for thread in self.threads.drain(..) {
            // It panicked, and whoever was waiting for it has been told that it stopped.
            drop(thread.join());
        }
    }
}

fn stopped() -> StoreError {
    StoreError::Unavailable { reason: "the readers have stopped".into() }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, read: Read) -> Result<(), StoreError> {
        let mut waiting = self.lock();
        if waiting.readers == 0 {
            return Err(stopped());
        }
        waiting.reads.push_back(read);
        drop(waiting);
        self.arrived.notify_one();
        Ok(())
    }

    fn next(&self) -> Option<Read> {
        let mut waiting = self.lock();
        loop {
            if let Some(read) = waiting.reads.pop_front() {
                return Some(read);
            }
            if waiting.closed {
                return None;
            }
            waiting = self.arrived.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Says that a reader is gone. Nobody may wait for the last one.
struct Leaving<'a>(&'a Queue);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        let mut waiting = self.0.lock();
        waiting.readers -= 1;
        if waiting.readers == 0 {
            waiting.reads.clear();
        }
    }
}

/// A reader opens its connection when it is first needed.
fn serve(queue: &Queue, path: &Path) {
    let _leaving = Leaving(queue);
    let mut open: Option<Connection> = None;
    while let Some(read) = queue.next() {
        if open.is_none() {
            match connect(path, Purpose::Read) {
                Ok(conn) => open = Some(conn),
                Err(error) => {
                    read(Err(store_error(error)));
                    continue;
                }
            }
        }
        if let Some(conn) = &open {
            read(Ok(conn));
        }
    }
}
