//! The program of this process, as reports and traces name it.

use std::ffi::{CStr, c_char, c_int};

/// Bytes for the text of `MPI_Get_library_version`: MPICH takes 8,192 at most, Open MPI 256.
const MPI_TEXT: usize = 16 << 10;

/// Names of MPI libraries whose functions no other object is shown: an interpreter's modules have
/// them so.
const MPI_LIBRARIES: [&CStr; 3] = [c"libmpi.so.40", c"libmpi.so.12", c"libmpich.so.12"];

/// The last part of the program's name.
pub fn program() -> String {
    let name = std::env::current_exe().unwrap_or_default();
    name.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The program with its arguments, as it was called.
pub fn command() -> String {
    let words: Vec<_> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    words.join(" ")
}

/// Name and version of this process's MPI: `Open MPI v4.1.4`. Empty if it is not found.
pub fn mpi() -> String {
    type Version = unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int;
    let name = c"MPI_Get_library_version".as_ptr();
    // SAFETY: names that end, looked up only in what is loaded already.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name) };
    let in_library = |library: &&CStr| {
        // SAFETY: as above; with RTLD_NOLOAD nothing is loaded, and the handle is never closed.
        let object = unsafe { libc::dlopen(library.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        // SAFETY: a handle that dlopen has just given.
        if object.is_null() { object } else { unsafe { libc::dlsym(object, name) } }
    };
    let found = std::iter::once(found)
        .chain(MPI_LIBRARIES.iter().map(in_library))
        .find(|function| !function.is_null());
    let Some(function) = found else { return String::new() };
    let mut text = vec![0 as c_char; MPI_TEXT];
    let mut length = 0;
    // SAFETY: MPI's function of this name takes these, may be called at any time, and writes MPI_MAX_LIBRARY_VERSION_STRING bytes at
    // most, which is less than there are; the last one stays 0.
    let text = unsafe {
        std::mem::transmute::<*mut libc::c_void, Version>(function)(text.as_mut_ptr(), &mut length);
        CStr::from_ptr(text.as_ptr())
    };
    first_words(&text.to_string_lossy())
}

/// The name and the number out of texts like `Open MPI v4.1.4, package: …` and `MPICH
/// Version:\t4.0.2\n…`.
fn first_words(text: &str) -> String {
    let first = text.split(['\n', ',']).next().unwrap_or_default().replace("Version:", " ");
    first.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_mpi_is_a_name_and_a_number() {
        let of = ["Open MPI v4.1.4, package: Debian", "MPICH Version:\t4.0.2\nMPICH Release date:\tx", ""];
        assert_eq!(of.map(first_words), ["Open MPI v4.1.4", "MPICH 4.0.2", ""]);
        assert!(command().starts_with(std::env::args().next().unwrap().as_str()) && !program().is_empty());
    }
}
