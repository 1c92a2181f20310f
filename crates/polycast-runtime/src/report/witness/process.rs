//! The start of the witness: a process that is not this one's child, so that the program never waits for it and gets no signal when it ends.

use std::ffi::{CString, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr;

use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// Memory for the stack of a process that makes a few system calls.
const STACK_BYTES: usize = 64 << 10;

/// What the two processes on the way to the witness need; they allocate nothing.
struct Start {
    words: [*const c_char; 6],
    environment: [*const c_char; 1],
    files: [c_int; 2],
    /// End of the second one's stack.
    stack: *mut c_void,
}

/// Starts the program with the descriptor of its memory, a descriptor of this process, its number, and the name of a socket for what
/// goes to standard error, which may be empty. `None` if the system refuses. Returns when the witness runs.
pub fn spawn(program: &CString, memory: BorrowedFd<'_>, socket: &CString) -> Option<()> {
    // Found here in libc, it need not be looked for in the processes below.
    // SAFETY: it takes nothing and cannot fail.
    let number = unsafe { libc::syscall(libc::SYS_getpid) } as c_int;
    let this = pidfd_open(Pid::from_raw(number)?, PidfdFlags::empty()).ok()?;
    let files = [memory.as_raw_fd(), this.as_fd().as_raw_fd()];
    let numbers = [files[0], files[1], number].map(|number| CString::new(number.to_string()).ok());
    let [Some(memory), Some(process), Some(number)] = &numbers else { return None };
    // Aligned for any machine.
    let mut stacks = vec![0u128; 2 * STACK_BYTES / size_of::<u128>()];
    let [first, second] = [1, 2].map(|end| {
        // SAFETY: within the memory, or its end.
        unsafe { stacks.as_mut_ptr().cast::<u8>().add(end * STACK_BYTES).cast::<c_void>() }
    });
    let mut start = Start {
        words: [
            program.as_ptr(),
            memory.as_ptr(),
            process.as_ptr(),
            number.as_ptr(),
            socket.as_ptr(),
            ptr::null(),
        ],
        environment: [ptr::null()],
        files,
        stack: second,
    };
    // SAFETY: the words, files and stacks live until both processes are gone or have another program, for with CLONE_VFORK this
    // thread waits for that. They change nothing here but their stacks and this thread's errno. No signal comes meanwhile.
    unsafe {
        let (mut all, mut before) = (MaybeUninit::<libc::sigset_t>::uninit(), MaybeUninit::uninit());
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        // Without a signal at its end: the program may have a handler for those of its children.
        let between =
            libc::clone(go_between, first, libc::CLONE_VM | libc::CLONE_VFORK, (&raw mut start).cast());
        if between > 0 {
            let nothing = ptr::null_mut::<c_void>();
            while libc::syscall(libc::SYS_wait4, between, nothing, libc::__WALL, nothing) < 0
                && *libc::__errno_location() == libc::EINTR
            {}
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut());
        (between > 0).then_some(())
    }
}

/// The process between: it leaves the witness to the system when it ends.
extern "C" fn go_between(start: *mut c_void) -> c_int {
    // SAFETY: `spawn` waits with all of it.
    unsafe {
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        libc::clone(become_witness, (*start.cast::<Start>()).stack, flags, start);
    }
    0
}

/// Becomes the witness, in a session of its own: launchers end their ranks with all of their groups.
extern "C" fn become_witness(start: *mut c_void) -> c_int {
    // SAFETY: as above; descriptors are copies, for CLONE_FILES was not asked for.
    unsafe {
        let start = &*start.cast::<Start>();
        for file in start.files {
            libc::syscall(libc::SYS_fcntl, file, libc::F_SETFD, 0);
        }
        libc::syscall(libc::SYS_setsid);
        libc::syscall(libc::SYS_execve, start.words[0], start.words.as_ptr(), start.environment.as_ptr());
    }
    1
}
