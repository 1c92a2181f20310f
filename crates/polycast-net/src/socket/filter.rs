//! A filter that the kernel runs for each datagram (classic BPF; S. McCanne and V. Jacobson, *The BSD Packet Filter*, 1993).

use std::io;
use std::os::fd::BorrowedFd;

use nix::libc;

use super::option::{self, Plain};

/// The length of UDP's header, with which the data begins that a filter of a UDP socket sees.
const UDP_HEADER_BYTES: u32 = 8;
const ALL_OF_IT: u32 = u32::MAX;

// SAFETY: a number and a pointer, with padding that the kernel does not read; it is only ever written to the kernel.
unsafe impl Plain for libc::sock_fprog {}

pub(super) fn keep_only(socket: BorrowedFd<'_>, bytes: [u8; 4], at: u32) -> io::Result<()> {
    let step = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    let mut steps = [
        // A load from behind the end drops the datagram.
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, UDP_HEADER_BYTES + at),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, u32::from_be_bytes(bytes)),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, ALL_OF_IT),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, 0),
    ];
    // The kernel copies the steps.
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    option::set(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}
