//! The parts of a routine that are the same for every plan: C that is read from files as it stands.
//!
//! What belongs to trees stands between `#if TREES` and `#endif`, with `#else` where need be; these lines are resolved here, so that
//! a routine without trees does not mention them.

const PARTS: [&str; 4] = [
    include_str!("routine/plan.c"),
    include_str!("routine/ways.c"),
    include_str!("routine/pipeline.c"),
    include_str!("routine/broadcast.c"),
];

/// The code of a routine.
pub fn code(has_trees: bool, function: &str) -> String {
    let parts = PARTS.map(|part| resolve(part, has_trees));
    parts.join("\n").replace("int MPI_Bcast(", &format!("int {function}("))
}

/// Keeps of each conditional part what holds.
fn resolve(part: &str, has_trees: bool) -> String {
    let (mut kept, mut is_kept) = (String::new(), true);
    for line in part.lines() {
        match line {
            "#if TREES" => is_kept = has_trees,
            "#else" => is_kept = !is_kept,
            "#endif" => is_kept = true,
            _ if is_kept => {
                kept += line;
                kept.push('\n');
            }
            _ => {}
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_routine_without_trees_does_not_mention_them() {
        assert!(!code(false, "MPI_Bcast").contains("tree"));
        assert!(code(true, "MPI_Bcast").contains("tree"));
    }

    #[test]
    fn no_conditional_is_left() {
        for has_trees in [false, true] {
            assert!(!code(has_trees, "MPI_Bcast").lines().any(|line| line.starts_with('#')));
        }
    }

    #[test]
    fn the_function_has_the_name_that_is_wanted() {
        let code = code(false, "spread");
        assert!(code.contains("\nint spread(void *buffer,") && !code.contains("int MPI_Bcast("));
        assert!(code.contains("PMPI_Bcast("));
    }
}
