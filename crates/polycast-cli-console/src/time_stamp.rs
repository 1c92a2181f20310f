//! The present time for files.

use std::time::SystemTime;

/// The present time for files that people read, in the form of RFC 3339: `2026-11-22T03:00:00Z`.
pub fn time_stamp() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}
