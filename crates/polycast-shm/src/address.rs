//! Bytes of another process, copied once.

use std::io::{self, IoSliceMut};

use nix::errno::Errno;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;

/// Copies `place.len()` bytes that stand at `address` in process `process`. An address where
/// nothing is, or which the kernel does not let this process read, is an error.
pub fn read(process: u32, address: u64, place: &mut [u8]) -> io::Result<()> {
    let mut done = 0;
    while done < place.len() {
        let from = RemoteIoVec { base: address as usize + done, len: place.len() - done };
        let to = &mut [IoSliceMut::new(&mut place[done..])];
        match process_vm_readv(Pid::from_raw(process as i32), to, &[from]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => done += count,
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "asks the kernel")]
    fn what_is_there_is_copied_and_what_is_not_is_an_error() {
        let bytes = [7u8, 8, 9];
        let mut copy = [0; 3];
        read(std::process::id(), bytes.as_ptr() as u64, &mut copy).unwrap();
        assert_eq!(copy, bytes);
        assert!(read(std::process::id(), 8, &mut copy).is_err());
        assert!(read(u32::MAX >> 1, bytes.as_ptr() as u64, &mut copy).is_err());
    }
}
