//! What polycast says on standard error. A closed pipe or a full disk behind it must not change what a rank does: the others
//! would wait for it. So a failure to write is ignored (`eprintln!` panics).

use std::sync::Once;

use crate::machine;
use crate::of_process::of_process;

/// Writes `text`, which ends its last line by itself, in one piece.
pub fn text(text: &str) {
    machine::say(text);
}

/// Warns once per process: this is the one line that polycast writes without being asked.
pub fn warn_once(warning: &str) {
    of_process! { static ONCE: Once = Once::new(); }
    ONCE.with(|once| once.call_once(|| text(&format!("polycast: warning: {warning}\n"))));
}
