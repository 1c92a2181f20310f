//! What files of the site and of the user set, in jobs and for the tool.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::common::job::{Job, Output};
use crate::common::library_directory;
use crate::common::mpi::Mpi;

/// An installation with a file of the site's, and a folder with one of the user's.
struct Site(TempDir);

impl Site {
    fn new(of_site: &str, of_user: &str) -> Site {
        let folder = tempfile::tempdir().unwrap();
        let at = |place: &str| folder.path().join(place);
        for place in ["prefix/lib/polycast", "prefix/etc", "config"] {
            fs::create_dir_all(at(place)).unwrap();
        }
        // The library finds its prefix by the path that it is mapped from, which a link would not change.
        for file in fs::read_dir(library_directory()).unwrap().map(Result::unwrap) {
            let place = at("prefix/lib/polycast").join(file.file_name());
            match file.file_type().unwrap().is_file() {
                true => drop(fs::copy(file.path(), place).unwrap()),
                false => symlink(file.path(), place).unwrap(),
            }
        }
        fs::write(at("prefix/etc/polycast.conf"), of_site).unwrap();
        fs::write(at("config/polycast.conf"), of_user).unwrap();
        Site(folder)
    }

    fn at(&self, place: &str) -> String {
        self.0.path().join(place).to_str().unwrap().to_owned()
    }

    /// A job of two ranks with these variables, and what it said in its report.
    fn job(&self, mpi: Mpi, variables: &[(&str, &str)]) -> (Output, String) {
        let job = Job::stock(mpi, 2, "bcast_mixed");
        let job = job.preload(Path::new(&self.at("prefix/lib/polycast/libpolycast-mpi.so")).into());
        let job = job.variable("XDG_CONFIG_HOME", &self.at("config")).variable("POLYCAST_CACHE", "off");
        let job = job.variable("POLYCAST_REPORT", &self.at("job.json"));
        let job = variables.iter().fold(job, |job, (name, value)| job.variable(name, value));
        let output = job.run().expect_ok("bcast_mixed");
        let report =
            fs::read_to_string(self.at("job.json")).unwrap_or_else(|error| output.fail(&error.to_string()));
        (output, report)
    }

    fn info(&self, variables: &[(&str, &str)]) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_polycast"));
        command.arg("info").envs(variables.iter().copied());
        command
            .env("XDG_CONFIG_HOME", self.at("config"))
            .env("POLYCAST_LIBDIR", self.at("prefix/lib/polycast"));
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    }
}

#[test]
fn a_file_sets_what_the_environment_leaves() {
    let site = Site::new("POLYCAST_BCAST = \"binomial\"\n", "POLYCAST_GATHER = \"stock\"\n");
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let (output, report) = site.job(mpi, &[]);
        assert!(report.contains("\"binomial\""), "{report}");
        assert!(!output.stderr.contains("polycast: warning"), "{}", output.stderr);
        let (_, report) = site.job(mpi, &[("POLYCAST_BCAST", "chain")]);
        assert!(report.contains("\"chain\"") && !report.contains("\"binomial\""), "{report}");
    }
    let info = site.info(&[]);
    let from = format!(
        "binomial   from {}",
        fs::canonicalize(site.at("prefix/etc/polycast.conf")).unwrap().display()
    );
    assert!(info.contains(&from), "{info}");
    assert!(info.contains(&format!("stock   from {}", site.at("config/polycast.conf"))), "{info}");
}

#[test]
fn users_change_what_the_site_lets_them() {
    let of_site =
        "POLYCAST_BCAST = \"binomial\"\nusers_may_change = [\"POLYCAST_REPORT\", \"POLYCAST_CACHE\"]\n";
    let site = Site::new(of_site, "");
    let own = [("POLYCAST_BCAST", "chain")];
    let (output, report) = site.job(Mpi::OpenMpi, &own);
    assert!(report.contains("\"binomial\"") && !report.contains("\"chain\""), "{report}");
    let warnings: Vec<&str> =
        output.stderr.lines().filter(|line| line.contains("polycast: warning")).collect();
    assert_eq!(warnings.len(), 1, "{}", output.stderr);
    assert!(
        warnings[0].contains("POLYCAST_BCAST=chain: ") && warnings[0].contains("it is left out"),
        "{warnings:?}"
    );
    assert!(site.info(&own).contains("lets users change POLYCAST_CACHE, POLYCAST_REPORT alone"));
}

#[test]
fn a_file_with_mistakes_is_told_and_the_job_goes_on() {
    let site = Site::new("POLYCAST_BCST = \"chain\"\n", "no TOML");
    let (output, _) = site.job(Mpi::Mpich, &[]);
    let warnings: Vec<&str> =
        output.stderr.lines().filter(|line| line.contains("polycast: warning")).collect();
    assert_eq!(warnings.len(), 1, "{}", output.stderr);
    for expected in [
        "POLYCAST_BCST is unknown: did you mean POLYCAST_BCAST?",
        "expected NAME = \"value\"",
        "the file is left out",
    ] {
        assert!(warnings[0].contains(expected), "{expected}: {warnings:?}");
    }
}
