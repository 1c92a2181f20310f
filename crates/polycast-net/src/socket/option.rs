//! Socket options, most of which no safe wrapper has.

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, BorrowedFd};

use nix::errno::Errno;
use nix::libc;

/// Values that the kernel reads or writes as plain memory.
///
/// # Safety
/// Without padding, and every bit pattern is a value.
pub(super) unsafe trait Plain: Copy {}

// SAFETY: an integer.
unsafe impl Plain for libc::c_int {}
// SAFETY: an array of integers.
unsafe impl<const N: usize> Plain for [u32; N] {}
// SAFETY: three words of four bytes.
unsafe impl Plain for libc::ip_mreqn {}
// SAFETY: sixteen bytes and a word, aligned to four.
unsafe impl Plain for libc::ipv6_mreq {}

pub(super) fn set<T: Plain>(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: &T,
) -> io::Result<()> {
    // SAFETY: the kernel reads size_of::<T>() bytes from `value`, all of them initialised since T is plain.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    Ok(Errno::result(result).map(drop)?)
}

/// An error where the kernel has the option in another size.
pub(super) fn get<T: Plain>(socket: BorrowedFd<'_>, level: libc::c_int, name: libc::c_int) -> io::Result<T> {
    let mut value = MaybeUninit::<T>::uninit();
    let mut bytes = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `bytes` bytes into `value` and says in `bytes` how many it wrote.
    let result =
        unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, value.as_mut_ptr().cast(), &mut bytes) };
    Errno::result(result)?;
    if bytes as usize != size_of::<T>() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    // SAFETY: all bytes were written, and every bit pattern is a value of T.
    Ok(unsafe { value.assume_init() })
}

/// linux/sockios.h: SIOCOUTQ, which is the terminals' TIOCOUTQ.
pub(super) fn queued_bytes(socket: BorrowedFd<'_>) -> usize {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the kernel writes one integer.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if result == 0 { usize::try_from(bytes).unwrap_or(0) } else { 0 }
}
