//! An installation and launchers that only look like it, so that the verbs are tested without any MPI.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command as System;

use assert_cmd::Command;
use tempfile::TempDir;

pub mod traces;

/// What Open MPI 4 and MPICH 5 say for `--version`.
pub const OPEN_MPI_4: &str = "mpiexec (OpenRTE) 4.1.4";
pub const MPICH_5: &str = "HYDRA build details:\n    Version:    5.0.2";

/// A folder that holds `lib/`, the library directory, and `bin/`, which is all of PATH.
pub struct World {
    folder: TempDir,
}

impl World {
    /// A library with doors of these names, and no launcher.
    pub fn with_doors(doors: &[&str]) -> World {
        let world = World { folder: tempfile::tempdir().unwrap() };
        fs::create_dir_all(world.library().join("doors")).unwrap();
        fs::create_dir(world.path().join("bin")).unwrap();
        fs::write(world.preload(), "").unwrap();
        for door in doors {
            fs::write(world.library().join(format!("doors/polycast-door-{door}.so")), "").unwrap();
        }
        world
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn library(&self) -> PathBuf {
        self.path().canonicalize().unwrap().join("lib")
    }

    pub fn preload(&self) -> PathBuf {
        self.library().join("libpolycast-mpi.so")
    }

    /// Adds a launcher that says `version`, and that prints its arguments one a line and exits with 7 otherwise.
    pub fn launcher(self, name: &str, version: &str) -> World {
        let script = format!(
            "#!/bin/sh\nif [ \"$1\" = --version ]; then\n  echo '{version}'\n  exit\nfi\nprintf '%s\\n' \"$@\"\nexit 7\n"
        );
        self.executable(&format!("bin/{name}"), &script);
        self
    }

    /// Writes an executable file. Another process writes it: a process that another test forks meanwhile would
    /// inherit our open file, and the system does not execute a file that somebody may still write to.
    pub fn executable(&self, name: &str, content: &str) -> PathBuf {
        let (source, file) = (self.path().join("source"), self.path().join(name));
        fs::write(&source, content).unwrap();
        let status = System::new("install").arg("-m755").args([&source, &file]).status().unwrap();
        assert!(status.success(), "install {}", file.display());
        file
    }

    /// A program that is linked with a library of this soname; through a library in between, if that is named.
    pub fn program(&self, soname: &str, between: Option<&str>) -> PathBuf {
        let compile = |output: &str, arguments: &[&str]| {
            let mut compiler = System::new("cc");
            compiler.current_dir(self.path()).args(["-Wl,--no-as-needed", "-o", output]);
            assert!(compiler.args(arguments).status().unwrap().success(), "cc -o {output}");
        };
        let shared = |name: &str, needs: &[&str]| {
            let soname = format!("-Wl,-soname,{name}");
            let source = ["-shared", &soname, "-Wl,-rpath,$ORIGIN", "-x", "c", "/dev/null", "-x", "none"];
            compile(name, &[&source, needs].concat());
        };
        fs::write(self.path().join("main.c"), "int main(void) { return 0; }").unwrap();
        shared(soname, &[]);
        let linked = between.unwrap_or(soname);
        if between.is_some() {
            shared(linked, &[soname]);
        }
        compile("program", &["main.c", linked, "-Wl,-rpath,$ORIGIN", "-Wl,-rpath-link,."]);
        self.path().join("program")
    }

    /// `polycast` in this world, without any setting of the environment.
    pub fn polycast(&self, arguments: &[&str]) -> Command {
        let mut command = assert_cmd::cargo::cargo_bin_cmd!("polycast");
        command
            .env("POLYCAST_LIBDIR", self.library())
            .env("PATH", self.path().join("bin"))
            .env("HOME", self.path())
            .env_remove("XDG_CACHE_HOME")
            .current_dir(self.path());
        for name in
            ["POLYCAST", "POLYCAST_BCAST", "POLYCAST_TABLE", "POLYCAST_REPORT", "LD_PRELOAD", "COLUMNS"]
        {
            command.env_remove(name);
        }
        for name in ["SLURM_JOB_ID", "PBS_NODEFILE", "LSB_HOSTS", "PE_HOSTFILE"] {
            command.env_remove(name);
        }
        command.args(arguments);
        command
    }
}

/// The standard output of a command that succeeds.
pub fn output(command: &mut Command) -> String {
    String::from_utf8(command.assert().success().get_output().stdout.clone()).unwrap()
}

/// The standard error of a command that ends with this status.
pub fn error(command: &mut Command, status: i32) -> String {
    String::from_utf8(command.assert().code(status).get_output().stderr.clone()).unwrap()
}
