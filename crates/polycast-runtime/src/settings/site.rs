//! What files of the site and of the user set, below the environment.

use std::sync::{Arc, OnceLock};

use polycast_core::variables::SiteFiles;

use crate::machine;
use crate::of_process::of_process;

of_process! {
    /// What the files said when the process first asked.
    static SITE: OnceLock<Arc<SiteFiles>> = OnceLock::new();
}

/// What the files of this host and this user set; they are read once.
pub fn site() -> Arc<SiteFiles> {
    SITE.with(|site| site.get_or_init(|| Arc::new(read())).clone())
}

/// The value of a variable: the environment's, or what a file sets. An empty value counts as none.
pub fn value(name: &str) -> Option<String> {
    site().value(name, own(name))
}

fn read() -> SiteFiles {
    let library = machine::library();
    let prefix = library.as_deref().and_then(|file| file.strip_suffix("/lib/polycast/libpolycast.so"));
    SiteFiles::find(prefix, own, machine::text_if_there)
}

/// The value of a variable in the environment.
fn own(name: &str) -> Option<String> {
    machine::variable(name)?.into_string().ok()
}
