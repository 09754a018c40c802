//! A process that is held, so that its number means it and nobody else.
#![allow(unsafe_code, reason = "calls the operating system")]

use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};

use windows_sys::Win32::Foundation::{FILETIME, WAIT_OBJECT_0};
use windows_sys::Win32::System::Threading::{
    GetProcessTimes, OpenProcess, PROCESS_QUERY_LIMITED_INFORMATION, PROCESS_SYNCHRONIZE,
    PROCESS_TERMINATE, TerminateProcess, WaitForSingleObject,
};

/// How a process ends that is ended by force, as whoever waits for it sees.
const KILLED: u32 = 1;

pub(crate) struct Opened(OwnedHandle);

impl Opened {
    pub(crate) fn to_look(pid: u32) -> io::Result<Self> {
        Self::open(pid, PROCESS_QUERY_LIMITED_INFORMATION | PROCESS_SYNCHRONIZE)
    }

    pub(crate) fn to_end(pid: u32) -> io::Result<Self> {
        Self::open(pid, PROCESS_TERMINATE)
    }

    fn open(pid: u32, rights: u32) -> io::Result<Self> {
        // SAFETY: it takes no pointers, and a handle that it returns is ours to close.
        let handle = unsafe { OpenProcess(rights, 0, pid) };
        if handle.is_null() {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it is open, and nobody else has it.
        Ok(Self(unsafe { OwnedHandle::from_raw_handle(handle) }))
    }

    /// When it began, in tenths of a microsecond since 1601.
    pub(crate) fn began(&self) -> io::Result<u64> {
        let nothing = || FILETIME { dwLowDateTime: 0, dwHighDateTime: 0 };
        let (mut began, mut ended, mut kernel, mut user) =
            (nothing(), nothing(), nothing(), nothing());
        // SAFETY: the handle is open, and each pointer is to a value of ours that outlives the call.
        let done = unsafe {
            GetProcessTimes(self.0.as_raw_handle(), &mut began, &mut ended, &mut kernel, &mut user)
        };
        match done {
            0 => Err(io::Error::last_os_error()),
            _ => Ok(u64::from(began.dwHighDateTime) << 32 | u64::from(began.dwLowDateTime)),
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        // SAFETY: the handle is open; with no time to wait, it only looks.
        unsafe { WaitForSingleObject(self.0.as_raw_handle(), 0) == WAIT_OBJECT_0 }
    }

    pub(crate) fn end(&self) -> io::Result<()> {
        // SAFETY: the handle is open.
        match unsafe { TerminateProcess(self.0.as_raw_handle(), KILLED) } {
            0 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }
}
