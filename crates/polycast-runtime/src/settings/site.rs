//! What files of the site and of the user set, below the environment.

use std::sync::{Arc, OnceLock};

use polycast_core::variables::{MAX_SITE_BYTES, SiteFiles, SiteText, site_files};

use crate::machine;
use crate::of_process::of_process;

of_process! {
    /// What the files said when the process first asked.
    static SITE: OnceLock<Arc<SiteFiles>> = OnceLock::new();
}

/// What the files of this host and this user set; they are read once.
pub fn site() -> Arc<SiteFiles> {
    SITE.with(|site| site.get_or_init(|| Arc::new(SiteFiles::read(texts()))).clone())
}

/// The value of a variable: the environment's, or what a file sets. An empty value counts as none.
pub fn value(name: &str) -> Option<String> {
    site().value(name, machine::variable(name).and_then(|value| value.into_string().ok()))
}

fn texts() -> Vec<SiteText> {
    let library = machine::library();
    let prefix = library.as_deref().and_then(|file| file.strip_suffix("/lib/polycast/libpolycast.so"));
    let files = site_files(prefix, |name| machine::variable(name)?.into_string().ok());
    let text = |(file, is_of_site): (String, bool)| {
        let text = machine::text_if_there(&file, MAX_SITE_BYTES)?;
        Some(SiteText { file, is_of_site, text })
    };
    files.into_iter().filter_map(text).collect()
}
