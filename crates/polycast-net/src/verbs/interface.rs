//! What `doors/verbs/verbs.h` says, for Rust; a test holds one against the other.

use std::ffi::{c_char, c_int, c_void};

use nix::libc::sockaddr;

pub(super) const VERSION: u32 = 1;

#[repr(C)]
pub(super) struct RawPort {
    pub device: [c_char; 64],
    pub port: u32,
    pub datagram_bytes: u32,
    pub bits_per_second: u64,
    pub is_ethernet: u32,
    pub is_active: u32,
    pub partition: u32,
    pub reserved: u32,
}

#[repr(C)]
pub(super) struct RawFailure {
    pub step: *const c_char,
    pub error: i32,
    pub reserved: u32,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct RawDatagram {
    pub bytes: *const c_void,
    pub length: usize,
}

/// The events that a member has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct VerbsCounts {
    /// Work requests to send that ended with an error.
    pub failed_sends: u64,
    /// Work requests to receive that ended with an error.
    pub failed_receives: u64,
    /// Datagrams of this process that came back.
    pub own: u64,
    /// Times that the membership was lost: a port went down, the subnet manager changed.
    pub lost: u64,
    /// Times that the group was joined, the first included.
    pub joined: u64,
    /// Times that the port was found to be down.
    pub port_down: u64,
}

#[repr(C)]
pub(super) struct RawMember {
    _opaque: [u8; 0],
}

#[repr(C)]
pub(super) struct Functions {
    pub version: u32,
    pub reserved: u32,
    pub port: unsafe extern "C" fn(*const sockaddr, *mut RawPort, *mut RawFailure) -> c_int,
    pub join:
        unsafe extern "C" fn(*const sockaddr, *const sockaddr, usize, *mut RawFailure) -> *mut RawMember,
    pub leave: unsafe extern "C" fn(*mut RawMember),
    pub send: unsafe extern "C" fn(*mut RawMember, *const c_void, usize, usize) -> i64,
    pub receive: unsafe extern "C" fn(*mut RawMember, *mut RawDatagram, c_int) -> c_int,
    pub arm: unsafe extern "C" fn(*mut RawMember) -> c_int,
    pub renew: unsafe extern "C" fn(*mut RawMember) -> c_int,
    pub descriptor: unsafe extern "C" fn(*const RawMember) -> c_int,
    pub room_bytes: unsafe extern "C" fn(*const RawMember) -> usize,
    pub datagram_bytes: unsafe extern "C" fn(*const RawMember) -> usize,
    pub queued_bytes: unsafe extern "C" fn(*mut RawMember) -> usize,
    pub count: unsafe extern "C" fn(*mut RawMember, *mut VerbsCounts),
}

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};

    use super::*;

    /// Sizes and places as a C compiler has them, from the header itself.
    #[test]
    fn the_mirror_is_that_of_the_header() {
        let folder = std::env::temp_dir().join(format!("polycast-verbs-mirror-{}", std::process::id()));
        let header = concat!(env!("CARGO_MANIFEST_DIR"), "/../../doors/verbs/verbs.h");
        let expected = [
            ("sizeof(struct polycast_verbs_port)", size_of::<RawPort>()),
            ("offsetof(struct polycast_verbs_port, bits_per_second)", offset_of!(RawPort, bits_per_second)),
            ("offsetof(struct polycast_verbs_port, partition)", offset_of!(RawPort, partition)),
            ("sizeof(struct polycast_verbs_failure)", size_of::<RawFailure>()),
            ("sizeof(struct polycast_verbs_datagram)", size_of::<RawDatagram>()),
            ("sizeof(struct polycast_verbs_counts)", size_of::<VerbsCounts>()),
            ("offsetof(struct polycast_verbs_counts, lost)", offset_of!(VerbsCounts, lost)),
            ("sizeof(struct polycast_verbs)", size_of::<Functions>()),
            ("offsetof(struct polycast_verbs, port)", offset_of!(Functions, port)),
            ("offsetof(struct polycast_verbs, send)", offset_of!(Functions, send)),
            ("offsetof(struct polycast_verbs, descriptor)", offset_of!(Functions, descriptor)),
            ("offsetof(struct polycast_verbs, count)", offset_of!(Functions, count)),
            ("POLYCAST_VERBS_VERSION", VERSION as usize),
        ];
        let claims: Vec<String> = expected
            .iter()
            .map(|(what, bytes)| format!("_Static_assert({what} == {bytes}, \"{what}\");\n"))
            .collect();
        std::fs::write(&folder, format!("#include \"{header}\"\n{}", claims.concat())).unwrap();
        let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
        let output = std::process::Command::new(compiler)
            .args(["-std=c17", "-fsyntax-only", "-x", "c"])
            .arg(&folder)
            .output()
            .expect("a C compiler");
        std::fs::remove_file(&folder).unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
