//! Names of files that tell hosts, jobs and processes apart.

use std::io;
use std::path::Path;

use rustix::fs::Access;

/// Accepts a folder in which this process may make files.
///
/// # Errors
/// The reason for which the process may not.
pub fn can_be_written_in(folder: &Path) -> io::Result<()> {
    Ok(rustix::fs::access(folder, Access::WRITE_OK | Access::EXEC_OK)?)
}

/// Expands the name of a file: `%h`, `%j` and `%p` become host, job and process, and `%%` a percent
/// sign.
pub fn expand(name: &str) -> String {
    let mut expanded = String::new();
    let mut rest = name.chars();
    while let Some(c) = rest.next() {
        match (c, c == '%') {
            (_, true) => match rest.next() {
                Some('h') => expanded.push_str(&rustix::system::uname().nodename().to_string_lossy()),
                Some('j') => expanded.push_str(&job()),
                Some('p') => expanded.push_str(&std::process::id().to_string()),
                Some('%') => expanded.push('%'),
                other => expanded.extend(std::iter::once('%').chain(other)),
            },
            (other, false) => expanded.push(other),
        }
    }
    expanded
}

/// The number of the batch system's job.
fn job() -> String {
    let names = ["SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID"];
    names.into_iter().find_map(|name| std::env::var(name).ok()).unwrap_or_else(|| "0".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_tell_jobs_and_processes_apart() {
        let process = std::process::id();
        assert_eq!(expand("out/%p.json"), format!("out/{process}.json"));
        assert_eq!(expand("a%%p%x%"), "a%p%x%");
        assert!(!expand("%h").is_empty() && !expand("%j").contains('%'));
    }
}
