//! Who may do what with a file, folder or pipe: its owner, and the list that says whom it lets do what.
#![allow(unsafe_code, reason = "calls the operating system")]

use std::ffi::c_void;
use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::path::Path;
use std::ptr::{null, null_mut};
use std::slice;
use std::sync::OnceLock;

use windows_sys::Win32::Foundation::{ERROR_SUCCESS, HANDLE, LocalFree};
use windows_sys::Win32::Security::Authorization::{
    ConvertSidToStringSidW, ConvertStringSecurityDescriptorToSecurityDescriptorW,
    GetNamedSecurityInfoW, GetSecurityInfo, SDDL_REVISION_1, SE_FILE_OBJECT, SE_KERNEL_OBJECT,
    SetNamedSecurityInfoW,
};
use windows_sys::Win32::Security::{
    ACCESS_ALLOWED_ACE, ACE_HEADER, ACL, DACL_SECURITY_INFORMATION, GetAce,
    GetSecurityDescriptorDacl, GetTokenInformation, OWNER_SECURITY_INFORMATION,
    PROTECTED_DACL_SECURITY_INFORMATION, PSECURITY_DESCRIPTOR, PSID, SECURITY_ATTRIBUTES,
    TOKEN_QUERY, TOKEN_USER, TokenUser,
};
use windows_sys::Win32::System::Threading::{GetCurrentProcess, OpenProcessToken};

use super::text::wide;

/// An account, as Windows numbers it: `S-1-5-…`.
pub(crate) type Sid = String;

/// Kinds of entries of a list, and marks on them; see winnt.h.
const ALLOWED: u8 = 0;
const ALLOWED_FOR_OBJECT: u8 = 5;
const ALLOWED_IF: u8 = 9;
const ALLOWED_IF_FOR_OBJECT: u8 = 11;
const INHERIT_ONLY: u8 = 0x08;

/// Whose something is, and whom it lets do what. No entry of it denies anything here: whoever is let in
/// is told, even if another entry keeps them out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) owner: Sid,
    /// None where there is no list at all, which lets everybody do everything.
    pub(crate) granted: Option<Vec<Grant>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) to: Sid,
    pub(crate) rights: u32,
}

/// Memory that Windows handed over.
struct Local(*mut c_void);

impl Drop for Local {
    fn drop(&mut self) {
        // SAFETY: Windows allocated it for us with LocalAlloc, and nobody else frees it.
        unsafe { LocalFree(self.0) };
    }
}

fn done(code: u32) -> io::Result<()> {
    match code {
        ERROR_SUCCESS => Ok(()),
        code => Err(io::Error::from_raw_os_error(code.cast_signed())),
    }
}

/// Of a file or folder.
pub(crate) fn of_file(path: &Path) -> io::Result<Access> {
    let path = wide(path);
    let (mut owner, mut list, mut descriptor) = (null_mut(), null_mut(), null_mut());
    // SAFETY: the text ends with a zero, and the pointers are to values that outlive the call; what is null
    // is not wanted.
    done(unsafe {
        let what = OWNER_SECURITY_INFORMATION | DACL_SECURITY_INFORMATION;
        let (path, group, audit) = (path.as_ptr(), null_mut(), null_mut());
        let (owner, list, descriptor) = (&mut owner, &mut list, &mut descriptor);
        GetNamedSecurityInfoW(path, SE_FILE_OBJECT, what, owner, group, list, audit, descriptor)
    })?;
    // What was found lies in it.
    let _descriptor = Local(descriptor);
    // SAFETY: the call has succeeded, so the list is null or a part of the descriptor.
    let granted = unsafe { granted(list) }?;
    Ok(Access { owner: text(owner)?, granted })
}

/// Who made a pipe.
pub(crate) fn owner_of_pipe(pipe: &impl AsRawHandle) -> io::Result<Sid> {
    let (mut owner, mut descriptor) = (null_mut(), null_mut());
    // SAFETY: the handle is open, and the pointers are to values that outlive the call; what is null is not
    // wanted.
    done(unsafe {
        let (handle, what) = (pipe.as_raw_handle(), OWNER_SECURITY_INFORMATION);
        let (group, list, audit) = (null_mut(), null_mut(), null_mut());
        let descriptor = &mut descriptor;
        GetSecurityInfo(handle, SE_KERNEL_OBJECT, what, &mut owner, group, list, audit, descriptor)
    })?;
    // What was found lies in it.
    let _descriptor = Local(descriptor);
    text(owner)
}

/// # Safety
///
/// The list is null or a valid one.
unsafe fn granted(list: *const ACL) -> io::Result<Option<Vec<Grant>>> {
    if list.is_null() {
        return Ok(None);
    }
    // SAFETY: it is a valid list.
    let count = unsafe { (*list).AceCount };
    let mut granted = Vec::new();
    for index in 0..count {
        let mut entry: *mut c_void = null_mut();
        // SAFETY: the list is valid and the index is below its count.
        if unsafe { GetAce(list, index.into(), &mut entry) } == 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: every entry begins with a header.
        let ACE_HEADER { AceType, AceFlags, .. } = unsafe { entry.cast::<ACE_HEADER>().read() };
        if AceFlags & INHERIT_ONLY != 0 {
            continue;
        }
        match AceType {
            ALLOWED | ALLOWED_IF => {
                let entry = entry.cast::<ACCESS_ALLOWED_ACE>();
                // SAFETY: both kinds begin like this, with the account where `SidStart` is.
                let (rights, to) = unsafe { ((*entry).Mask, &raw mut (*entry).SidStart) };
                granted.push(Grant { to: text(to.cast())?, rights });
            }
            // Files have none of these. Whom they let in is not looked up, so it counts as everybody.
            ALLOWED_FOR_OBJECT | ALLOWED_IF_FOR_OBJECT => {
                granted.push(Grant { to: "S-1-1-0".to_owned(), rights: u32::MAX });
            }
            _ => {}
        }
    }
    Ok(Some(granted))
}

fn text(sid: PSID) -> io::Result<Sid> {
    if sid.is_null() {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut text: *mut u16 = null_mut();
    // SAFETY: the account is valid, as all are that come here from Windows, and the pointer is to a value
    // that outlives the call.
    if unsafe { ConvertSidToStringSidW(sid, &mut text) } == 0 {
        return Err(io::Error::last_os_error());
    }
    let _text = Local(text.cast());
    let mut length = 0;
    // SAFETY: the text ends with a zero.
    let units = unsafe {
        while *text.add(length) != 0 {
            length += 1;
        }
        slice::from_raw_parts(text, length)
    };
    Ok(String::from_utf16_lossy(units))
}

/// The account that this process runs as.
pub(crate) fn own() -> io::Result<&'static Sid> {
    static OWN: OnceLock<Sid> = OnceLock::new();
    if let Some(own) = OWN.get() {
        return Ok(own);
    }
    let mut token: HANDLE = null_mut();
    // SAFETY: the pointer is to a value that outlives the call.
    if unsafe { OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &mut token) } == 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it is open, and nobody else has it.
    let token = unsafe { OwnedHandle::from_raw_handle(token) };
    // Numbers of eight bytes, because what is written begins with a pointer. The longest account has 68.
    let mut room = [0_u64; 32];
    let mut length = 0;
    // SAFETY: the handle is open, and no more is written than there is room for.
    let known = unsafe {
        let size = size_of_val(&room) as u32;
        let handle = token.as_raw_handle();
        GetTokenInformation(handle, TokenUser, room.as_mut_ptr().cast(), size, &mut length)
    };
    if known == 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: that is what was asked for, and `room` is where it points into.
    let user = unsafe { room.as_ptr().cast::<TOKEN_USER>().read() };
    let own = text(user.User.Sid)?;
    Ok(OWN.get_or_init(|| own))
}

/// A list that was written as text; see "Security Descriptor String Format" in Microsoft's documentation.
pub(crate) struct List {
    descriptor: Local,
}

// SAFETY: it is memory that nobody changes.
unsafe impl Send for List {}
// SAFETY: it is memory that nobody changes.
unsafe impl Sync for List {}

impl List {
    pub(crate) fn read(text: &str) -> io::Result<Self> {
        let text = wide(text);
        let mut descriptor: PSECURITY_DESCRIPTOR = null_mut();
        // SAFETY: the text ends with a zero, and the pointer is to a value that outlives the call.
        let done = unsafe {
            ConvertStringSecurityDescriptorToSecurityDescriptorW(
                text.as_ptr(),
                SDDL_REVISION_1,
                &mut descriptor,
                null_mut(),
            )
        };
        match done {
            0 => Err(io::Error::last_os_error()),
            _ => Ok(Self { descriptor: Local(descriptor) }),
        }
    }

    /// Gives it to a file or folder and to all that inherits from it, in the place of what they inherit
    /// from above.
    pub(crate) fn give(&self, path: &Path) -> io::Result<()> {
        let path = wide(path);
        let (mut present, mut list, mut defaulted) = (0, null_mut(), 0);
        // SAFETY: the descriptor is valid, and the pointers are to values that outlive the call.
        let found = unsafe {
            let descriptor = self.descriptor.0;
            GetSecurityDescriptorDacl(descriptor, &mut present, &mut list, &mut defaulted)
        };
        if found == 0 {
            return Err(io::Error::last_os_error());
        }
        if present == 0 || list.is_null() {
            // To give nothing would let everybody in.
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let what = DACL_SECURITY_INFORMATION | PROTECTED_DACL_SECURITY_INFORMATION;
        // SAFETY: the text ends with a zero, and the list is part of the descriptor that we hold.
        done(unsafe {
            let path = path.as_ptr();
            let no_owner = null_mut();
            SetNamedSecurityInfoW(path, SE_FILE_OBJECT, what, no_owner, null_mut(), list, null())
        })
    }

    /// Has something made with it from its first moment.
    ///
    /// `make` gets a `SECURITY_ATTRIBUTES` that is valid until it returns.
    pub(crate) fn with<T>(&self, make: impl FnOnce(*mut c_void) -> T) -> T {
        let mut attributes = SECURITY_ATTRIBUTES {
            nLength: size_of::<SECURITY_ATTRIBUTES>() as u32,
            lpSecurityDescriptor: self.descriptor.0,
            bInheritHandle: 0,
        };
        make((&raw mut attributes).cast())
    }
}
