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

/// Words of C, but for those that the routine has itself; and what every program has.
const WORDS: &str = " alignas alignof asm auto bool break case constexpr continue default do double else extern false float goto inline \
    long main nullptr register restrict short signed static_assert switch thread_local true typedef typeof typeof_unqual union unsigned \
    volatile ";

/// Whether a name of C can have it.
pub fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Whether a name means something already, so that no compiler or linker would take a function of that name.
pub fn is_taken(name: &str) -> bool {
    let reserved = ["MPI_", "PMPI_", "__"].iter().any(|start| name.starts_with(start))
        || name.strip_prefix('_').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()));
    // What follows a comment, up to the next.
    let code = PARTS.iter().flat_map(|part| part.split("/*"));
    let code = code.map(|part| part.split_once("*/").map_or(part, |(_, code)| code));
    reserved
        || WORDS.contains(&format!(" {name} "))
        || code.flat_map(|code| code.split(|c| !is_of_name(c))).any(|word| word == name)
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
    fn words_of_c_and_of_the_routine_are_taken() {
        let taken = "int if while long main _Bool __x MPI_Send PMPI_Bcast malloc pipeline hosts choices CHOICES routine";
        assert!(taken.split(' ').all(is_taken));
        assert!(!["my_bcast", "broadcast", "spread", "integer", "lon"].into_iter().any(is_taken));
    }

    #[test]
    fn the_function_has_the_name_that_is_wanted() {
        let code = code(false, "spread");
        assert!(code.contains("\nint spread(void *buffer,") && !code.contains("int MPI_Bcast("));
        assert!(code.contains("PMPI_Bcast("));
    }
}
