//! libpolycast.so
