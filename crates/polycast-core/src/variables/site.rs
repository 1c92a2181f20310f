//! Files in which a site or a user sets variables: what they say counts where the environment says nothing.
//!
//! ```text
//!   /etc/polycast.conf  ◀  PREFIX/etc/polycast.conf  ◀  ~/.config/polycast.conf  ◀  environment      the rightmost counts
//!   └──────── the site's: users_may_change ────────┘     └───── what the list has ─────────┘
//! ```

use std::collections::{BTreeMap, BTreeSet};

use super::{Reader, SWITCH, WARNED, WITNESS, check, find};

/// The most bytes that such a file may have.
const MAX_SITE_BYTES: usize = 64 << 10;

/// The key of the list of variables that users may change.
const USERS_MAY_CHANGE: &str = "users_may_change";

/// A file with variables, as it was read.
#[derive(Clone, Debug)]
struct SiteText {
    file: String,
    /// True for a file of the site's, false for one of the user's own.
    is_of_site: bool,
    /// The content, or the reason why there is none, in words.
    text: Result<String, String>,
}

/// A value, and who set it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FileValue {
    value: String,
    file: String,
}

/// What the files of a site and a user set.
#[derive(Clone, Debug, Default)]
pub struct SiteFiles {
    values: BTreeMap<&'static str, FileValue>,
    /// The variables that users may change, and the file that says so; `None`: all of them.
    may_change: Option<(BTreeSet<&'static str>, String)>,
    /// Mistakes in the files, one line each.
    problems: Vec<String>,
}

impl SiteFiles {
    /// Reads the files that there are. `prefix`: where polycast is installed; `variable` looks into the
    /// environment; `text` reads a file of so many bytes at most, if it is there, or says why it cannot.
    pub fn find(
        prefix: Option<&str>,
        variable: impl Fn(&str) -> Option<String>,
        text: impl Fn(&str, usize) -> Option<Result<String, String>>,
    ) -> SiteFiles {
        let read = |(file, is_of_site): (String, bool)| {
            let text = text(&file, MAX_SITE_BYTES)?;
            Some(SiteText { file, is_of_site, text })
        };
        SiteFiles::read(places(prefix, variable).into_iter().filter_map(read))
    }

    /// Takes files, the site's before the user's; of two that set a variable the later one counts. A
    /// mistake costs the line in which it stands, and a text that is no TOML the whole file.
    fn read(files: impl IntoIterator<Item = SiteText>) -> SiteFiles {
        let mut site = SiteFiles::default();
        files.into_iter().for_each(|file| site.add(file));
        site
    }

    fn add(&mut self, SiteText { file, is_of_site, text }: SiteText) {
        let parsed = text.and_then(|text| {
            text.parse::<toml::Table>()
                .map_err(|error| format!("expected NAME = \"value\": {}", error.message()))
        });
        let table = match parsed {
            Ok(table) => table,
            Err(problem) => return self.problems.push(format!("{file}: {problem}; the file is left out")),
        };
        for (key, value) in table {
            let added = match key.as_str() {
                USERS_MAY_CHANGE if is_of_site => names(&value).map(|names| {
                    self.may_change = Some((names, file.clone()));
                }),
                USERS_MAY_CHANGE => Err("only files of the site say what users may change".to_owned()),
                _ => self.set(&key, &value, &file, is_of_site),
            };
            if let Err(problem) = added {
                self.problems.push(format!("{file}: {key}: {problem}; the line is left out"));
            }
        }
    }

    fn set(&mut self, key: &str, value: &toml::Value, file: &str, is_of_site: bool) -> Result<(), String> {
        let name = settable(key)?;
        let value = match value {
            toml::Value::String(text) => text.clone(),
            toml::Value::Boolean(is_on) => if *is_on { "on" } else { "off" }.to_owned(),
            toml::Value::Integer(number) => number.to_string(),
            other => {
                return Err(format!("expected a text in quotes, found a value of type {}", other.type_str()));
            }
        };
        if let Some(problem) = check::problem(name, &value) {
            return Err(problem);
        }
        if !is_of_site && let Some(problem) = self.forbids(name) {
            return Err(problem);
        }
        self.values.insert(name, FileValue { value, file: file.to_owned() });
        Ok(())
    }

    /// The reason why users may not change a variable, if they may not.
    fn forbids(&self, name: &str) -> Option<String> {
        let (names, file) = self.may_change.as_ref()?;
        // Who switches off, or is a helper of polycast's, changes nothing of what the site has chosen.
        let is_free = find(name).is_none_or(|variable| settable(variable.name).is_err()) || name == SWITCH;
        let list = || names.iter().copied().collect::<Vec<_>>().join(", ");
        match is_free || names.contains(name) {
            true => None,
            false if names.is_empty() => Some(format!("{file} lets users change nothing")),
            false => Some(format!("{file} lets users change {} alone", list())),
        }
    }

    /// The value in force of a variable, whose value in the environment is `own`. An empty value
    /// counts as none.
    pub fn value(&self, name: &str, own: Option<String>) -> Option<String> {
        let own = own.filter(|value| !value.is_empty() && self.forbids(name).is_none());
        own.or_else(|| Some(self.values.get(name)?.value.clone()).filter(|value| !value.is_empty()))
    }

    /// The file whose value of a variable counts, if the environment's does not: its value there is
    /// `own`.
    pub fn file(&self, name: &str, own: Option<&str>) -> Option<&str> {
        let counts = own.is_some_and(|value| !value.is_empty()) && self.forbids(name).is_none();
        self.values.get(name).filter(|_| !counts).map(|setting| setting.file.as_str())
    }

    /// Mistakes in the files, and variables of an environment that its user may not change; a clause
    /// each.
    pub fn problems(&self, environment: impl IntoIterator<Item = (String, String)>) -> Vec<String> {
        let forbidden = |(name, value): (String, String)| {
            let reason = find(&name).filter(|_| !value.is_empty()).and_then(|_| self.forbids(&name))?;
            Some(format!("{name}={value}: {reason}; it is left out"))
        };
        self.problems.iter().cloned().chain(environment.into_iter().filter_map(forbidden)).collect()
    }
}

/// The variable of this name, if a file may set it.
fn settable(name: &str) -> Result<&'static str, String> {
    match find(name) {
        None => Err(check::unknown(name)),
        Some(variable) if variable.reader == Reader::Tool || [WARNED, WITNESS].contains(&variable.name) => {
            Err("it is for the environment alone".to_owned())
        }
        Some(variable) => Ok(variable.name),
    }
}

/// The variables that a list in a file names.
fn names(value: &toml::Value) -> Result<BTreeSet<&'static str>, String> {
    let list = value.as_array().ok_or("expected a list of variables: [\"POLYCAST_REPORT\"]")?;
    let name = |value: &toml::Value| settable(value.as_str().ok_or("expected names in quotes")?);
    list.iter().map(name).collect()
}

/// The files that are read, in their order; `prefix` is where polycast is installed, `variable` looks into the environment.
fn places(prefix: Option<&str>, variable: impl Fn(&str) -> Option<String>) -> Vec<(String, bool)> {
    let folder = variable("XDG_CONFIG_HOME").filter(|folder| folder.starts_with('/'));
    let folder = folder.or_else(|| Some(variable("HOME")?.trim_end_matches('/').to_owned() + "/.config"));
    let installed = prefix.map(|prefix| format!("{}/etc/polycast.conf", prefix.trim_end_matches('/')));
    let installed = installed.filter(|file| file != SYSTEMS);
    let own = folder.filter(|folder| folder.starts_with('/')).map(|folder| format!("{folder}/polycast.conf"));
    let of_site = std::iter::once(SYSTEMS.to_owned()).chain(installed).map(|file| (file, true));
    of_site.chain(own.map(|file| (file, false))).collect()
}

/// The file of a whole host.
const SYSTEMS: &str = "/etc/polycast.conf";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn site(files: &[(&str, bool, &str)]) -> SiteFiles {
        SiteFiles::read(files.iter().map(|(file, is_of_site, text)| SiteText {
            file: (*file).to_owned(),
            is_of_site: *is_of_site,
            text: Ok((*text).to_owned()),
        }))
    }

    fn none() -> [(String, String); 0] {
        []
    }

    #[test]
    fn what_is_nearer_to_the_user_counts() {
        let site = site(&[
            (
                "/etc/polycast.conf",
                true,
                "POLYCAST_NET = \"eth0\"\nPOLYCAST_TRIALS = false\nPOLYCAST_MULTICAST = \"off\"",
            ),
            ("/opt/etc/polycast.conf", true, "POLYCAST_NET = \"ib0\""),
            ("/home/u/.config/polycast.conf", false, "POLYCAST_MULTICAST = \"ipv6\""),
        ]);
        assert_eq!(site.value("POLYCAST_NET", None).as_deref(), Some("ib0"));
        assert_eq!(site.file("POLYCAST_NET", None), Some("/opt/etc/polycast.conf"));
        assert_eq!(site.value("POLYCAST_TRIALS", None).as_deref(), Some("off"));
        assert_eq!(site.value("POLYCAST_MULTICAST", None).as_deref(), Some("ipv6"));
        assert_eq!(site.value("POLYCAST_MULTICAST", Some("ipv4".into())).as_deref(), Some("ipv4"));
        assert_eq!(site.file("POLYCAST_MULTICAST", Some("ipv4")), None);
        // An empty value is none: what the files say counts.
        assert_eq!(site.value("POLYCAST_NET", Some(String::new())).as_deref(), Some("ib0"));
        assert_eq!(site.value("POLYCAST_BCAST", None), None);
        assert!(site.problems(none()).is_empty());
    }

    #[test]
    fn users_change_what_the_site_lets_them() {
        let text = "POLYCAST_NET = \"eth0\"\nusers_may_change = [\"POLYCAST_REPORT\"]";
        let site = site(&[
            ("/etc/polycast.conf", true, text),
            (
                "/home/u/.config/polycast.conf",
                false,
                "POLYCAST_NET = \"ib0\"\nPOLYCAST_REPORT = \"job.json\"",
            ),
        ]);
        assert_eq!(site.value("POLYCAST_NET", Some("ib0".into())).as_deref(), Some("eth0"));
        assert_eq!(site.file("POLYCAST_NET", Some("ib0")), Some("/etc/polycast.conf"));
        assert_eq!(site.value("POLYCAST_BCAST", Some("chain".into())), None);
        assert_eq!(site.value("POLYCAST_REPORT", None).as_deref(), Some("job.json"));
        // Whoever can start a job can start it without polycast; so it may be switched off.
        assert_eq!(site.value("POLYCAST", Some("off".into())).as_deref(), Some("off"));
        let own =
            [("POLYCAST_BCAST".to_owned(), "chain".to_owned()), ("HOME".to_owned(), "/home/u".to_owned())];
        assert_eq!(
            site.problems(own),
            [
                "/home/u/.config/polycast.conf: POLYCAST_NET: /etc/polycast.conf lets users change POLYCAST_REPORT alone; the line is left out",
                "POLYCAST_BCAST=chain: /etc/polycast.conf lets users change POLYCAST_REPORT alone; it is left out",
            ]
        );
    }

    #[test]
    fn mistakes_cost_their_line_and_say_what_is_expected() {
        let text = "POLYCAST_BCST = \"chain\"\nPOLYCAST_WAIT = \"often\"\nPOLYCAST_TOOL = \"x\"\nPOLYCAST_NET = [1]\nPOLYCAST_MADCAP = \"h\"";
        let site = site(&[
            ("a", true, text),
            ("b", true, "POLYCAST_NET: eth0"),
            ("c", false, "users_may_change = []"),
            ("d", true, "users_may_change = [\"POLYCAST_NTE\"]"),
        ]);
        assert_eq!(site.value("POLYCAST_MADCAP", None).as_deref(), Some("h"));
        let problems = site.problems(none());
        for expected in [
            "a: POLYCAST_BCST: POLYCAST_BCST is unknown: did you mean POLYCAST_BCAST?; the line is left out",
            "a: POLYCAST_TOOL: it is for the environment alone; the line is left out",
            "a: POLYCAST_NET: expected a text in quotes, found a value of type array; the line is left out",
            "c: users_may_change: only files of the site say what users may change; the line is left out",
        ] {
            assert!(problems.iter().any(|problem| problem == expected), "{expected}: {problems:#?}");
        }
        assert!(
            problems.iter().any(|problem| problem.starts_with("b: expected NAME = \"value\"")),
            "{problems:#?}"
        );
        assert!(problems.iter().any(|problem| problem.starts_with("a: POLYCAST_WAIT: ")), "{problems:#?}");
        assert!(problems.iter().any(|problem| problem.starts_with("d: users_may_change: ")), "{problems:#?}");
        assert_eq!(site.value("POLYCAST_WAIT", None), None);
    }

    #[test]
    fn files_are_looked_for_where_users_expect_them() {
        let home = |name: &str| (name == "HOME").then(|| "/home/u/".to_owned());
        let files = places(Some("/opt/polycast"), home);
        let expected = [
            ("/etc/polycast.conf", true),
            ("/opt/polycast/etc/polycast.conf", true),
            ("/home/u/.config/polycast.conf", false),
        ];
        assert!(files.iter().map(|(file, is_of_site)| (file.as_str(), *is_of_site)).eq(expected));
        // Installed in / it is one file.
        assert_eq!(places(Some("/"), |_| None), [(SYSTEMS.to_owned(), true)]);
    }

    proptest! {
        #[test]
        fn any_text_leaves_the_environment_in_force(text in ".{0,200}", value in "[a-z]{1,8}") {
            let site = site(&[("a", false, &text)]);
            prop_assert_eq!(site.value("POLYCAST_NET", Some(value.clone())), Some(value));
        }
    }
}
