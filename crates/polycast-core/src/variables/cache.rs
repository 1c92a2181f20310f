use std::path::PathBuf;

use super::{CACHE, is_off};

/// The folder in which findings are kept for later jobs: what the user named, else `polycast` in the folder that the XDG base directory
/// specification (2021) has for such things. `None`: nowhere. `variable` gives what is set and not empty.
pub fn cache_folder(variable: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let absolute = |path: String| Some(PathBuf::from(path)).filter(|path| path.is_absolute());
    match variable(CACHE) {
        Some(word) if is_off(&word) => None,
        Some(folder) => Some(folder.into()),
        None => {
            let caches = variable("XDG_CACHE_HOME").and_then(absolute);
            let caches = caches.or_else(|| Some(variable("HOME").and_then(absolute)?.join(".cache")));
            Some(caches?.join("polycast"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_word_counts_first() {
        let folder = |set: &[(&str, &str)]| {
            cache_folder(|name| {
                set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            })
        };
        let home = ("HOME", "/home/ada");
        assert_eq!(folder(&[home]), Some("/home/ada/.cache/polycast".into()));
        assert_eq!(folder(&[home, ("XDG_CACHE_HOME", "/tmp/c")]), Some("/tmp/c/polycast".into()));
        assert_eq!(folder(&[home, ("XDG_CACHE_HOME", "c")]), Some("/home/ada/.cache/polycast".into()));
        assert_eq!(folder(&[home, (CACHE, "mine")]), Some("mine".into()));
        assert_eq!(folder(&[home, (CACHE, "OFF")]), None);
        assert_eq!(folder(&[("HOME", "")]), None, "of a user who has none");
    }
}
