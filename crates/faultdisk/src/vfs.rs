//! The table of C functions through which SQLite reaches its files.
//!
//! For a file of a watched folder, each call is forwarded to the operating system's own table and
//! written down under one lock, so that the tape has the order in which things happened. For any other
//! file the system's table opens it in the memory SQLite gave us, and we never see it again.

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::sync::{Arc, OnceLock};
use std::thread;

use rusqlite::ffi::{self, sqlite3_file, sqlite3_io_methods, sqlite3_vfs};

use crate::disk::{State, Watched, watching};
use crate::fault::{Errno, Op, Trouble, code};
use crate::tape::{Event, FileNo};

/// Makes this table the default one, once per process.
pub(crate) fn install() {
    static INSTALLED: OnceLock<()> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        // SAFETY: a null name asks for the default table, which lives as long as the process.
        let system = unsafe { ffi::sqlite3_vfs_find(ptr::null()) };
        assert!(!system.is_null(), "SQLite has a file layer");
        // SAFETY: it is not null, and SQLite changes no other field than the link to the next one.
        let system_fields = unsafe { &*system };
        let ours = sqlite3_vfs {
            iVersion: 2,
            szOsFile: system_fields.szOsFile.max(size_of::<File>() as c_int),
            mxPathname: system_fields.mxPathname,
            pNext: ptr::null_mut(),
            zName: c"faultdisk".as_ptr(),
            pAppData: system.cast(),
            xOpen: Some(open),
            xDelete: Some(delete),
            xAccess: Some(access),
            xFullPathname: Some(full_pathname),
            xDlOpen: None,
            xDlError: None,
            xDlSym: None,
            xDlClose: None,
            xRandomness: Some(randomness),
            xSleep: Some(sleep),
            xCurrentTime: Some(current_time),
            xGetLastError: Some(last_error),
            xCurrentTimeInt64: Some(current_time_int64),
            xSetSystemCall: None,
            xGetSystemCall: None,
            xNextSystemCall: None,
        };
        // SAFETY: the table is never freed.
        let registered = unsafe { ffi::sqlite3_vfs_register(Box::leak(Box::new(ours)), 1) };
        assert_eq!(registered, ffi::SQLITE_OK, "SQLite takes the table");
    });
}

/// What SQLite holds for an open file of a watched folder.
#[repr(C)]
struct File {
    base: sqlite3_file,
    open: *mut Open,
}

struct Open {
    watched: Arc<Watched>,
    name: String,
    file: FileNo,
    /// The first sync of a journal or log also syncs the folder, so that its name is on the disk.
    syncs_folder: bool,
    /// The system's own file lives in here.
    system: Box<[u64]>,
}

impl Open {
    fn system(&mut self) -> *mut sqlite3_file {
        self.system.as_mut_ptr().cast()
    }
}

static METHODS: sqlite3_io_methods = sqlite3_io_methods {
    // Version 2 has shared memory and no mapped files, which the store does not use either.
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: None,
    xUnfetch: None,
};

/// Calls the system's function for the whole table.
macro_rules! system {
    ($vfs:expr, $function:ident ( $($argument:expr),* )) => {{
        // SAFETY: SQLite hands us the table that we registered; it leads to the system's, which
        // has all the functions of version 2. The arguments are SQLite's own.
        unsafe {
            let system: *mut sqlite3_vfs = (*$vfs).pAppData.cast();
            ((*system).$function.expect("the system's table is whole"))(system, $($argument),*)
        }
    }};
}

/// Calls the system's function for an open file.
macro_rules! on_system {
    ($open:expr, $function:ident ( $($argument:expr),* )) => {{
        let system = $open.system();
        // SAFETY: the file was opened by the system's table in this memory, and is open until
        // `close`. The arguments are SQLite's own.
        unsafe {
            ((*(*system).pMethods).$function.expect("the system's file is whole"))(
                system, $($argument),*)
        }
    }};
}

/// The file that SQLite means.
///
/// # Safety
/// `file` must have been opened by `open` as a watched one, and not be closed.
unsafe fn opened<'a>(file: *mut sqlite3_file) -> &'a mut Open {
    // SAFETY: `open` put it there. A connection uses its file from one thread at a time.
    unsafe { &mut *(*file.cast::<File>()).open }
}

/// # Safety
/// `name` must be null or end with a zero.
unsafe fn path<'a>(name: *const c_char) -> Option<&'a Path> {
    // SAFETY: as the caller says; SQLite keeps names for as long as the call lasts.
    (!name.is_null())
        .then(|| Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(name) }.to_bytes())))
}

/// Whether a call has an end before it reaches the disk. A slow call takes its time here, where
/// nobody else waits for it.
fn refusal(open: &Open, op: Op) -> Option<c_int> {
    let trouble = open.watched.lock().trouble(op, &open.name);
    match trouble {
        None => None,
        Some(Trouble::Refused(errno)) => Some(code(op, errno)),
        Some(Trouble::Short) => Some(code(op, Errno::NoSpace)),
        Some(Trouble::Slow(delay)) => {
            thread::sleep(delay);
            None
        }
    }
}

unsafe extern "C" fn open(
    vfs: *mut sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut sqlite3_file,
    mut flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    // SAFETY: SQLite's own name.
    let Some((path, (watched, short))) =
        unsafe { path(name) }.and_then(|path| Some((path, watching(path)?)))
    else {
        return system!(vfs, xOpen(name, file, flags, out_flags));
    };
    // SAFETY: SQLite gave us this memory; without methods it does not call `close`.
    unsafe { (*file).pMethods = ptr::null() };
    let mut state = watched.lock();
    match state.trouble(Op::Open, &short) {
        // A file that cannot be opened for writing is opened for reading.
        Some(Trouble::Refused(Errno::ReadOnly)) if flags & ffi::SQLITE_OPEN_READWRITE != 0 => {
            flags &= !(ffi::SQLITE_OPEN_READWRITE | ffi::SQLITE_OPEN_CREATE);
            flags |= ffi::SQLITE_OPEN_READONLY;
        }
        Some(Trouble::Refused(errno)) => return code(Op::Open, errno),
        _ => {}
    }
    // SAFETY: SQLite hands us the table that we registered, which leads to the system's.
    let size = unsafe { (*(*vfs).pAppData.cast::<sqlite3_vfs>()).szOsFile };
    let words = usize::try_from(size).unwrap_or(0).div_ceil(size_of::<u64>());
    let mut system = vec![0_u64; words].into_boxed_slice();
    let opened = system!(vfs, xOpen(name, system.as_mut_ptr().cast(), flags, out_flags));
    if opened != ffi::SQLITE_OK {
        return opened;
    }
    let Ok(number) = state.opened(path, &short) else { return ffi::SQLITE_CANTOPEN };
    drop(state);
    let logs =
        ffi::SQLITE_OPEN_MAIN_JOURNAL | ffi::SQLITE_OPEN_SUPER_JOURNAL | ffi::SQLITE_OPEN_WAL;
    let syncs_folder = flags & ffi::SQLITE_OPEN_CREATE != 0 && flags & logs != 0;
    let open = Box::new(Open { watched, name: short, file: number, syncs_folder, system });
    // SAFETY: SQLite gave us at least as much memory as `File` takes.
    unsafe {
        file.cast::<File>().write(File {
            base: sqlite3_file { pMethods: &raw const METHODS },
            open: Box::into_raw(open),
        });
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn delete(
    vfs: *mut sqlite3_vfs,
    name: *const c_char,
    sync_folder: c_int,
) -> c_int {
    // SAFETY: SQLite's own name.
    let Some((watched, short)) = unsafe { path(name) }.and_then(watching) else {
        return system!(vfs, xDelete(name, sync_folder));
    };
    let mut state = watched.lock();
    if let Some(Trouble::Refused(errno)) = state.trouble(Op::Delete, &short) {
        return code(Op::Delete, errno);
    }
    let deleted = system!(vfs, xDelete(name, 0));
    if deleted == ffi::SQLITE_OK {
        state.unlinked(&short);
        if sync_folder != 0 {
            state.tape.events.push(Event::SyncFolder);
        }
    }
    deleted
}

unsafe extern "C" fn access(
    vfs: *mut sqlite3_vfs,
    name: *const c_char,
    flags: c_int,
    found: *mut c_int,
) -> c_int {
    system!(vfs, xAccess(name, flags, found))
}

unsafe extern "C" fn full_pathname(
    vfs: *mut sqlite3_vfs,
    name: *const c_char,
    room: c_int,
    full: *mut c_char,
) -> c_int {
    system!(vfs, xFullPathname(name, room, full))
}

unsafe extern "C" fn randomness(vfs: *mut sqlite3_vfs, many: c_int, out: *mut c_char) -> c_int {
    system!(vfs, xRandomness(many, out))
}

unsafe extern "C" fn sleep(vfs: *mut sqlite3_vfs, microseconds: c_int) -> c_int {
    system!(vfs, xSleep(microseconds))
}

unsafe extern "C" fn current_time(vfs: *mut sqlite3_vfs, out: *mut f64) -> c_int {
    system!(vfs, xCurrentTime(out))
}

unsafe extern "C" fn current_time_int64(vfs: *mut sqlite3_vfs, out: *mut i64) -> c_int {
    system!(vfs, xCurrentTimeInt64(out))
}

unsafe extern "C" fn last_error(vfs: *mut sqlite3_vfs, room: c_int, out: *mut c_char) -> c_int {
    system!(vfs, xGetLastError(room, out))
}

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    // SAFETY: SQLite closes a file once, and `open` made the box.
    let mut open = unsafe { Box::from_raw((*file.cast::<File>()).open) };
    on_system!(open, xClose())
}

unsafe extern "C" fn read(
    file: *mut sqlite3_file,
    buffer: *mut c_void,
    many: c_int,
    offset: i64,
) -> c_int {
    // SAFETY: SQLite uses files that are open.
    let open = unsafe { opened(file) };
    match refusal(open, Op::Read) {
        Some(code) => code,
        None => on_system!(open, xRead(buffer, many, offset)),
    }
}

unsafe extern "C" fn write(
    file: *mut sqlite3_file,
    buffer: *const c_void,
    many: c_int,
    offset: i64,
) -> c_int {
    // SAFETY: SQLite uses files that are open.
    let open = unsafe { opened(file) };
    let trouble = open.watched.lock().trouble(Op::Write, &open.name);
    let (done, answer) = match trouble {
        None => (many, ffi::SQLITE_OK),
        Some(Trouble::Refused(errno)) => return code(Op::Write, errno),
        Some(Trouble::Short) => (many / 2, ffi::SQLITE_FULL),
        Some(Trouble::Slow(delay)) => {
            thread::sleep(delay);
            (many, ffi::SQLITE_OK)
        }
    };
    let watched = open.watched.clone();
    let mut state = watched.lock();
    let written = on_system!(open, xWrite(buffer, done, offset));
    if written != ffi::SQLITE_OK {
        return written;
    }
    let length = usize::try_from(done).expect("SQLite writes no less than nothing");
    let offset = usize::try_from(offset).expect("SQLite writes into the file");
    // SAFETY: SQLite's buffer has `many` bytes, and `done` is not more.
    let bytes = unsafe { std::slice::from_raw_parts(buffer.cast::<u8>(), length) };
    state.wrote(open.file, offset, bytes);
    answer
}

unsafe extern "C" fn truncate(file: *mut sqlite3_file, size: i64) -> c_int {
    // SAFETY: SQLite uses files that are open.
    let open = unsafe { opened(file) };
    if let Some(code) = refusal(open, Op::Truncate) {
        return code;
    }
    let watched = open.watched.clone();
    let mut state = watched.lock();
    let truncated = on_system!(open, xTruncate(size));
    if truncated == ffi::SQLITE_OK {
        let size = usize::try_from(size).expect("SQLite cuts no more than everything");
        state.resized(open.file, size);
    }
    truncated
}

/// Nothing is forwarded: the machine that runs the test keeps its power, so only the tape has to
/// know.
unsafe extern "C" fn sync(file: *mut sqlite3_file, _: c_int) -> c_int {
    // SAFETY: SQLite uses files that are open.
    let open = unsafe { opened(file) };
    if let Some(code) = refusal(open, Op::Sync) {
        push(&mut open.watched.lock(), Event::SyncFailed { file: open.file });
        return code;
    }
    let watched = open.watched.clone();
    let mut state = watched.lock();
    push(&mut state, Event::Sync { file: open.file });
    if std::mem::take(&mut open.syncs_folder) {
        push(&mut state, Event::SyncFolder);
    }
    ffi::SQLITE_OK
}

fn push(state: &mut State, event: Event) {
    state.tape.events.push(event);
}

unsafe extern "C" fn file_size(file: *mut sqlite3_file, size: *mut i64) -> c_int {
    // SAFETY: SQLite uses files that are open.
    on_system!(unsafe { opened(file) }, xFileSize(size))
}

unsafe extern "C" fn lock(file: *mut sqlite3_file, level: c_int) -> c_int {
    // SAFETY: SQLite uses files that are open.
    on_system!(unsafe { opened(file) }, xLock(level))
}

unsafe extern "C" fn unlock(file: *mut sqlite3_file, level: c_int) -> c_int {
    // SAFETY: SQLite uses files that are open.
    on_system!(unsafe { opened(file) }, xUnlock(level))
}

unsafe extern "C" fn check_reserved_lock(file: *mut sqlite3_file, held: *mut c_int) -> c_int {
    // SAFETY: SQLite uses files that are open.
    on_system!(unsafe { opened(file) }, xCheckReservedLock(held))
}

unsafe extern "C" fn file_control(
    file: *mut sqlite3_file,
    what: c_int,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: SQLite uses files that are open.
    on_system!(unsafe { opened(file) }, xFileControl(what, argument))
}

unsafe extern "C" fn sector_size(file: *mut sqlite3_file) -> c_int {
    // SAFETY: SQLite uses files that are open.
    on_system!(unsafe { opened(file) }, xSectorSize())
}

unsafe extern "C" fn device_characteristics(file: *mut sqlite3_file) -> c_int {
    // SAFETY: SQLite uses files that are open.
    on_system!(unsafe { opened(file) }, xDeviceCharacteristics())
}

unsafe extern "C" fn shm_map(
    file: *mut sqlite3_file,
    region: c_int,
    size: c_int,
    extend: c_int,
    mapped: *mut *mut c_void,
) -> c_int {
    // SAFETY: SQLite uses files that are open.
    let open = unsafe { opened(file) };
    match refusal(open, Op::Share) {
        Some(code) => {
            // SAFETY: SQLite's own place for the answer.
            unsafe { *mapped = ptr::null_mut() };
            code
        }
        None => on_system!(open, xShmMap(region, size, extend, mapped)),
    }
}

unsafe extern "C" fn shm_lock(
    file: *mut sqlite3_file,
    offset: c_int,
    many: c_int,
    flags: c_int,
) -> c_int {
    // SAFETY: SQLite uses files that are open.
    on_system!(unsafe { opened(file) }, xShmLock(offset, many, flags))
}

unsafe extern "C" fn shm_barrier(file: *mut sqlite3_file) {
    // SAFETY: SQLite uses files that are open.
    on_system!(unsafe { opened(file) }, xShmBarrier())
}

unsafe extern "C" fn shm_unmap(file: *mut sqlite3_file, delete: c_int) -> c_int {
    // SAFETY: SQLite uses files that are open.
    on_system!(unsafe { opened(file) }, xShmUnmap(delete))
}
