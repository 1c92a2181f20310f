//! Datagrams over InfiniBand and RoCE, without the kernel: `polycast-verbs.so`, opened where a device is present and wanted.
//!
//! The object links with libibverbs and librdmacm, and nothing else does; a host without them has no device either.

mod interface;

use std::ffi::{CStr, CString, OsStr, c_int, c_void};
use std::fmt;
use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{self, NonNull};

use nix::libc;
use nix::sys::socket::{SockaddrLike, SockaddrStorage};

pub use interface::VerbsCounts;
use interface::{Functions, RawDatagram, RawFailure, RawMember, RawPort, VERSION};

use crate::{Carrier, Family, Group, Interface};

/// The name of the object, beside the library.
pub const OBJECT: &str = "polycast-verbs.so";

/// The folder in which the kernel lists devices.
const DEVICES: &str = "/sys/class/infiniband";

/// The most datagrams of one look.
const BATCH: usize = 32;

/// Names of the devices of this host, as the kernel lists them; no library is asked.
pub fn devices() -> Vec<String> {
    let entries = fs::read_dir(DEVICES).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The reason why verbs cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VerbsError {
    /// The object cannot be opened: what the loader says.
    Object(String),
    /// A call failed.
    Call {
        /// The call that failed.
        step: String,
        /// An errno.
        errno: i32,
    },
}

impl VerbsError {
    /// The address belongs to no device: nothing is wrong.
    pub fn is_no_device(&self) -> bool {
        matches!(self, VerbsError::Call { errno: libc::ENODEV | libc::EADDRNOTAVAIL, .. })
    }

    /// Returns advice on what to do about the error.
    pub fn remedy(&self) -> &'static str {
        match self {
            VerbsError::Object(_) => {
                "install libibverbs1 and librdmacm1 (rdma-core), or POLYCAST_MULTICAST=ipv4"
            }
            VerbsError::Call { errno: libc::ENOMEM, .. } => {
                "raise the limit on locked memory to 8 MiB or unlimited (ulimit -l; memlock in /etc/security/limits.conf, \
                 LimitMEMLOCK= of slurmd)"
            }
            VerbsError::Call { errno: libc::EACCES | libc::EPERM, .. } => {
                "let users open /dev/infiniband/rdma_cm and /dev/infiniband/uverbs* (rdma-core's udev rules do)"
            }
            VerbsError::Call { errno: libc::ENODEV | libc::EADDRNOTAVAIL | libc::ENOENT, .. } => {
                "give the port an address (IPoIB, or the RoCE card's network interface); see `ibv_devices`, `rdma link`"
            }
            VerbsError::Call { errno: libc::ENETDOWN, .. } => {
                "see `ibv_devinfo`: the port must be PORT_ACTIVE"
            }
            VerbsError::Call { errno: libc::ETIMEDOUT | libc::ENETUNREACH, .. } => {
                "is there a subnet manager (`sminfo`), and may this partition have groups?"
            }
            VerbsError::Call { .. } => "`polycast doctor` checks what verbs need",
        }
    }

    fn of(failure: &RawFailure) -> VerbsError {
        // SAFETY: the object sets it to a literal, or leaves it null.
        let step = NonNull::new(failure.step.cast_mut()).map(|step| unsafe { CStr::from_ptr(step.as_ptr()) });
        let step = step.map_or_else(String::new, |step| step.to_string_lossy().into_owned());
        VerbsError::Call { step, errno: failure.error }
    }
}

impl fmt::Display for VerbsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VerbsError::Object(text) => write!(f, "{OBJECT} cannot be opened: {text}")?,
            VerbsError::Call { step, errno } => {
                write!(f, "{step}: {}", io::Error::from_raw_os_error(*errno))?;
            }
        }
        write!(f, "; {}", self.remedy())
    }
}

impl std::error::Error for VerbsError {}

/// The port that an interface's address belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerbsPort {
    /// The device's name, as `ibv_devices` shows it.
    pub device: String,
    /// The number of the port on the device, from 1.
    pub port: u32,
    /// The active MTU.
    pub most_datagram_bytes: u32,
    /// The port's rate; `None`: the device does not say.
    pub bits_per_second: Option<u64>,
    /// True for RoCE.
    pub is_ethernet: bool,
    /// True if the link is up, and on InfiniBand a subnet manager knows it.
    pub is_active: bool,
    /// The first key of the port's partition table.
    pub partition: u16,
}

impl VerbsPort {
    /// Returns the family of the port's groups: IPv6 over InfiniBand, where 80 random bits of a
    /// group tell jobs apart; IPv4 over RoCE, whose second version has no others. Where the
    /// interface has no address of that family, the other one.
    pub fn family(&self, interface: &Interface) -> Option<Family> {
        let families = if self.is_ethernet { [Family::V4, Family::V6] } else { [Family::V6, Family::V4] };
        families.into_iter().find(|family| interface.address(*family).is_some())
    }

    /// True if the port is a limited member of its partition. Such a port hears full members only,
    /// so not all hear all.
    pub fn is_limited(&self) -> bool {
        self.partition & 0x8000 == 0
    }
}

/// The object that has the functions of verbs, once opened; it is never closed.
#[derive(Clone, Copy)]
pub struct Verbs(&'static Functions);

impl Verbs {
    /// Opens the object in this folder.
    ///
    /// # Errors
    /// What the loader says, or another version of the object.
    pub fn open(folder: &Path) -> Result<Verbs, VerbsError> {
        let failed = |text: &str| VerbsError::Object(text.to_owned());
        let path = CString::new(folder.join(OBJECT).as_os_str().as_bytes()).map_err(|_| failed("no path"))?;
        // SAFETY: the object has no initializers of its own; those of the libraries below it are made for being opened so.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            // SAFETY: a text of the loader's, of this thread, until its next call.
            let text =
                NonNull::new(unsafe { libc::dlerror() }).map(|text| unsafe { CStr::from_ptr(text.as_ptr()) });
            return Err(VerbsError::Object(
                text.map_or_else(String::new, |text| text.to_string_lossy().into_owned()),
            ));
        }
        // SAFETY: the handle is that of an open object.
        let functions = unsafe { libc::dlsym(handle, c"polycast_verbs".as_ptr()) };
        let functions = functions.cast::<Functions>();
        // SAFETY: the first field of every version is its number; the object stays open, so what it has does, too.
        match unsafe { functions.cast::<u32>().as_ref() } {
            // SAFETY: this version's table is of this type.
            Some(&VERSION) => Ok(Verbs(unsafe { &*functions })),
            Some(_) => Err(failed("it is of another version of polycast")),
            None => Err(failed("it has no table of functions")),
        }
    }

    /// The port that this interface's address of one family belongs to.
    ///
    /// # Errors
    /// The call that failed; [`VerbsError::is_no_device`] where there is none.
    pub fn port(&self, interface: &Interface) -> Result<VerbsPort, VerbsError> {
        let mut failure = no_failure();
        let families = [Family::V4, Family::V6];
        let addresses = families.iter().filter_map(|family| address_of(interface, *family));
        for address in addresses {
            // SAFETY: all zeroes is a value of it.
            let mut port: RawPort = unsafe { std::mem::zeroed() };
            // SAFETY: an address, and places of the types that the object expects.
            if unsafe { (self.0.port)(address.as_ptr(), &mut port, &mut failure) } == 0 {
                // SAFETY: the object ends it with a zero.
                let device = unsafe { CStr::from_ptr(port.device.as_ptr()) };
                return Ok(VerbsPort {
                    device: device.to_string_lossy().into_owned(),
                    port: port.port,
                    most_datagram_bytes: port.datagram_bytes,
                    bits_per_second: Some(port.bits_per_second).filter(|rate| *rate > 0),
                    is_ethernet: port.is_ethernet != 0,
                    is_active: port.is_active != 0,
                    partition: port.partition as u16,
                });
            }
        }
        Err(VerbsError::of(&failure))
    }

    /// Joins a group on the interface's port, with room for about so many bytes of datagrams.
    ///
    /// # Errors
    /// The call that failed.
    pub fn join(
        &self,
        interface: &Interface,
        group: Group,
        room_bytes: usize,
    ) -> Result<VerbsMember, VerbsError> {
        let missing = || VerbsError::Call { step: "an address".to_owned(), errno: libc::EADDRNOTAVAIL };
        let address = address_of(interface, group.family()).ok_or_else(missing)?;
        let group = socket_address(group.address, interface.index);
        let mut failure = no_failure();
        // SAFETY: two addresses, and a place of the type that the object expects.
        let member = unsafe { (self.0.join)(address.as_ptr(), group.as_ptr(), room_bytes, &mut failure) };
        match NonNull::new(member) {
            Some(member) => Ok(VerbsMember { functions: self.0, member, dropped: 0 }),
            None => Err(VerbsError::of(&failure)),
        }
    }
}

fn no_failure() -> RawFailure {
    RawFailure { step: ptr::null(), error: libc::EADDRNOTAVAIL, reserved: 0 }
}

fn address_of(interface: &Interface, family: Family) -> Option<SockaddrStorage> {
    Some(socket_address(interface.address(family)?, interface.index))
}

/// Groups have no ports here.
fn socket_address(address: IpAddr, index: u32) -> SockaddrStorage {
    SockaddrStorage::from(match address {
        IpAddr::V4(_) => SocketAddr::new(address, 0),
        IpAddr::V6(address) => SocketAddrV6::new(address, 0, 0, index).into(),
    })
}

/// A queue pair in a group.
pub struct VerbsMember {
    functions: &'static Functions,
    member: NonNull<RawMember>,
    /// The number of datagrams of no length, which the protocol does not have.
    dropped: u64,
}

// SAFETY: a member belongs to no thread; who has it is the only one to use it.
unsafe impl Send for VerbsMember {}

impl VerbsMember {
    /// Returns the counts since the group was joined.
    pub fn counts(&self) -> VerbsCounts {
        let mut counts = VerbsCounts::default();
        // SAFETY: a member that is there, and a place of the type that the object expects.
        unsafe { (self.functions.count)(self.member.as_ptr(), &mut counts) };
        counts
    }
}

impl Drop for VerbsMember {
    fn drop(&mut self) {
        // SAFETY: nobody else has it.
        unsafe { (self.functions.leave)(self.member.as_ptr()) }
    }
}

fn outcome(number: c_int) -> io::Result<usize> {
    usize::try_from(number).map_err(|_| io::Error::from_raw_os_error(-number))
}

impl Carrier for VerbsMember {
    fn send(&mut self, datagrams: &[u8], datagram_bytes: usize) -> io::Result<usize> {
        let bytes = datagrams.as_ptr().cast::<c_void>();
        // SAFETY: the object reads these bytes, and copies what it takes.
        let taken =
            unsafe { (self.functions.send)(self.member.as_ptr(), bytes, datagrams.len(), datagram_bytes) };
        usize::try_from(taken).map_err(|_| io::Error::from_raw_os_error(-taken as i32))
    }

    fn receive(&mut self, each: &mut dyn FnMut(&[u8])) -> io::Result<usize> {
        let mut datagrams = [RawDatagram { bytes: ptr::null(), length: 0 }; BATCH];
        // SAFETY: it writes as many as there is room for.
        let count =
            unsafe { (self.functions.receive)(self.member.as_ptr(), datagrams.as_mut_ptr(), BATCH as c_int) };
        let count = outcome(count)?;
        for datagram in &datagrams[..count] {
            if datagram.length == 0 {
                self.dropped += 1;
                continue;
            }
            // SAFETY: these bytes are the member's, and nobody writes to them before the next call of `receive`.
            each(unsafe { std::slice::from_raw_parts(datagram.bytes.cast(), datagram.length) });
        }
        Ok(count)
    }

    fn arm(&mut self) -> bool {
        // SAFETY: a member that is there.
        unsafe { (self.functions.arm)(self.member.as_ptr()) != 0 }
    }

    fn most_datagram_bytes(&self) -> usize {
        // SAFETY: a member that is there.
        unsafe { (self.functions.datagram_bytes)(self.member.as_ptr()) }
    }

    fn receive_buffer_bytes(&self) -> usize {
        // SAFETY: a member that is there.
        2 * unsafe { (self.functions.room_bytes)(self.member.as_ptr()) }
    }

    fn refused(&self) -> u64 {
        self.dropped
    }

    fn dropped(&self) -> u64 {
        self.counts().failed_receives
    }

    fn failures(&self) -> u64 {
        let VerbsCounts { failed_sends, failed_receives, lost, .. } = self.counts();
        failed_sends + failed_receives + lost
    }

    fn queued_bytes(&self) -> usize {
        // SAFETY: a member that is there; who shares `self` does so under a lock.
        unsafe { (self.functions.queued_bytes)(self.member.as_ptr()) }
    }

    fn renew_membership(&mut self) -> io::Result<()> {
        // SAFETY: a member that is there.
        outcome(unsafe { (self.functions.renew)(self.member.as_ptr()) }).map(|_| ())
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        // SAFETY: it is the member's, and stays open as long.
        unsafe { BorrowedFd::borrow_raw((self.functions.descriptor)(self.member.as_ptr())) }
    }
}

/// The folder of the object that this function is in: the library's, or the program's.
pub fn own_folder() -> Option<std::path::PathBuf> {
    // SAFETY: all zeroes is a value of it: null pointers.
    let mut found: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: an address of this object, and a place to write to.
    if unsafe { libc::dladdr(own_folder as *const c_void, &mut found) } == 0 || found.dli_fname.is_null() {
        return None;
    }
    // SAFETY: a text of the loader's, which lives as long as the object.
    let name = unsafe { CStr::from_ptr(found.dli_fname) };
    Some(Path::new(OsStr::from_bytes(name.to_bytes())).parent()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_opened_says_why() {
        let folder = tempfile();
        let Err(error) = Verbs::open(&folder) else { panic!("there is no such object") };
        assert!(error.to_string().contains("polycast-verbs.so cannot be opened"), "{error}");
        assert!(!error.is_no_device());
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(OBJECT), "no object").unwrap();
        let Err(error) = Verbs::open(&folder) else { panic!("a text is no object") };
        fs::remove_dir_all(&folder).unwrap();
        assert!(error.to_string().contains("rdma-core"), "{error}");
    }

    fn tempfile() -> std::path::PathBuf {
        std::env::temp_dir().join(format!("polycast-no-verbs-{}", std::process::id()))
    }

    #[test]
    fn every_hindrance_has_a_remedy() {
        let of = |errno| VerbsError::Call { step: "ibv_reg_mr".to_owned(), errno }.to_string();
        assert!(of(libc::ENOMEM).contains("memlock"));
        assert!(of(libc::EACCES).contains("/dev/infiniband/rdma_cm"));
        assert!(of(libc::ENODEV).contains("rdma link"));
        assert!(of(libc::ETIMEDOUT).contains("subnet manager"));
        assert!(of(libc::ENOMEM).starts_with("ibv_reg_mr: "));
    }

    #[test]
    fn groups_are_of_the_family_that_the_network_carries() {
        let port = VerbsPort {
            device: "x".to_owned(),
            port: 1,
            most_datagram_bytes: 2048,
            bits_per_second: None,
            is_ethernet: false,
            is_active: true,
            partition: 0x7fff,
        };
        let interface = Interface {
            name: "ib0".to_owned(),
            index: 2,
            ipv4: Some("10.0.0.1".parse().unwrap()),
            ipv6: Some("fe80::1".parse().unwrap()),
            mtu_bytes: 2044,
            bits_per_second: None,
            is_up: true,
            can_multicast: true,
            is_loopback: false,
            has_default_route: false,
        };
        assert_eq!(port.family(&interface), Some(Family::V6));
        assert_eq!(port.family(&Interface { ipv6: None, ..interface.clone() }), Some(Family::V4));
        assert_eq!(VerbsPort { is_ethernet: true, ..port.clone() }.family(&interface), Some(Family::V4));
        assert!(port.is_limited() && !VerbsPort { partition: 0xffff, ..port }.is_limited());
    }
}
