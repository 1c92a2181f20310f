//! MPICH's decisions (`MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE`): objects in objects, of which the first whose name holds decides.
//!
//! ```text
//! {"collective=bcast": {"comm_type=intra": {"comm_size<16": …, "comm_size<=16": {"avg_msg_size<65536": {"algorithm=MPIR_Bcast_intra_binomial": {}},
//!                                                                               "avg_msg_size=any": …}, "comm_size=any": …}, …}, …}
//! ```
//! A file takes the place of all that is built in, and releases differ in what they know. So what is written is the library's own tree,
//! which it has as such a text, but for what was decided anew.

use std::path::Path;

use polycast_core::collective::Collective;

use super::Rule;

/// The deepest nesting of a tree; MPICH's are not deeper.
const MOST_DEEP: usize = 64;
/// The text that each tree of a collective begins with.
const BEGINS: &str = "{\"collective=";
/// The largest size in bytes, for MPICH reads sizes as a C int.
const MOST_BYTES: u64 = i32::MAX as u64;

/// A node: names in their order, each with what holds there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree(pub Vec<(String, Tree)>);

struct Text<'a> {
    left: &'a str,
    whole: usize,
}

impl Text<'_> {
    fn skip(&mut self) {
        self.left = self.left.trim_start();
    }

    fn is_next(&mut self, mark: char) -> bool {
        self.skip();
        let rest = self.left.strip_prefix(mark);
        self.left = rest.unwrap_or(self.left);
        rest.is_some()
    }

    fn expect(&mut self, mark: char) -> Result<(), String> {
        let found = self.is_next(mark);
        let at = self.whole - self.left.len();
        let next: String = self.left.chars().take(12).collect();
        found.then_some(()).ok_or_else(|| format!("byte {at}: expected {mark}, found {next:?}"))
    }

    fn tree(&mut self, deep: usize) -> Result<Tree, String> {
        if deep > MOST_DEEP {
            return Err(format!("expected at most {MOST_DEEP} objects in each other"));
        }
        self.expect('{')?;
        let mut tree = Tree::default();
        while !self.is_next('}') {
            if !tree.0.is_empty() {
                self.expect(',')?;
            }
            self.expect('"')?;
            let (name, rest) = self.left.split_once('"').ok_or("expected the end of a name")?;
            self.left = rest;
            self.expect(':')?;
            tree.0.push((name.to_owned(), self.tree(deep + 1)?));
        }
        Ok(tree)
    }
}

/// The name of a collective's functions in MPICH: `Bcast`.
fn function(collective: Collective) -> String {
    collective.function().trim_start_matches("MPI_").to_owned()
}

impl Tree {
    /// True if a text begins as a file of such a tree does.
    pub fn is_one(text: &str) -> bool {
        text.chars().filter(|letter| !letter.is_whitespace()).take(BEGINS.len()).eq(BEGINS.chars())
    }

    /// Reads a file of a tree.
    pub fn parse(text: &str) -> Result<Tree, String> {
        let mut left = Text { left: text, whole: text.len() };
        let tree = left.tree(0)?;
        left.skip();
        if !left.left.is_empty() {
            return Err(format!("byte {}: expected the end", text.len() - left.left.len()));
        }
        tree.check("the file", 0)?;
        Ok(tree)
    }

    /// Checks that each way down ends with an algorithm, and that what holds only sometimes has
    /// something behind it.
    fn check(&self, of: &str, deep: usize) -> Result<(), String> {
        let is_end = |name: &str| name.starts_with("algorithm=") || name.starts_with("composition=");
        let other = self.0.iter().find(|(name, _)| deep == 0 && !name.starts_with("collective="));
        if let Some((name, _)) = other {
            return Err(format!("expected collective=…, found {name:?}"));
        }
        if self.0.is_empty() {
            return Err(format!("{of}: expected an algorithm, found nothing"));
        }
        for (name, below) in self.0.iter().filter(|(name, _)| !is_end(name)) {
            below.check(&if deep == 0 { name.clone() } else { format!("{of}, {name}") }, deep + 1)?;
        }
        Ok(())
    }

    /// Reads the tree that is built into a library; trees for other layers of the library are
    /// passed over.
    pub fn of_library(path: &Path) -> Result<Tree, String> {
        let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut left = &bytes[..];
        while let Some(at) = left.windows(BEGINS.len()).position(|part| part == BEGINS.as_bytes()) {
            let end = left[at..].iter().position(|byte| *byte == 0).map_or(left.len(), |end| at + end);
            let found = std::str::from_utf8(&left[at..end]).ok().and_then(|text| Tree::parse(text).ok());
            if let Some(tree) = found.filter(|tree| tree.intra(Collective::Broadcast).is_some()) {
                let is_whole = Collective::ALL
                    .into_iter()
                    .all(|of| tree.at(&format!("collective={}", of.name())).is_some());
                if is_whole && tree.text().contains("algorithm=MPIR_Bcast_intra_") {
                    return Ok(tree);
                }
            }
            left = &left[end.max(at + 1)..];
        }
        Err(format!(
            "{}: expected MPICH's own decisions, found none: MPICH 4 and 5 have them",
            path.display()
        ))
    }

    fn at(&self, name: &str) -> Option<&Tree> {
        self.0.iter().find(|(of, _)| of == name).map(|(_, tree)| tree)
    }

    fn at_mut(&mut self, name: &str) -> Option<&mut Tree> {
        self.0.iter_mut().find(|(of, _)| of == name).map(|(_, tree)| tree)
    }

    fn intra(&self, collective: Collective) -> Option<&Tree> {
        self.at(&format!("collective={}", collective.name()))?.at("comm_type=intra")
    }

    /// Adds rules for communicators of `ranks` ranks; all other calls are served as before.
    pub fn graft(&mut self, collective: Collective, ranks: u32, rules: &[Rule]) -> Result<(), String> {
        let (name, function) = (collective.name(), function(collective));
        let mut place =
            self.at_mut(&format!("collective={name}")).and_then(|tree| tree.at_mut("comm_type=intra"));
        // What is sent from where it comes has its own.
        if place.as_ref().is_some_and(|tree| tree.at("is_sendbuf_inplace=no").is_some()) {
            place = place.and_then(|tree| tree.at_mut("is_sendbuf_inplace=no"));
        }
        let place =
            place.ok_or_else(|| format!("{name}: expected comm_type=intra in the library's decisions"))?;
        let own = place.clone();
        // MPICH counts the blocks of all ranks or one, as its own rules do.
        let (size, blocks) = match collective {
            Collective::Allgather => ("total_msg_size", 1),
            Collective::Alltoall => ("avg_msg_size", u64::from(ranks)),
            _ => ("avg_msg_size", 1),
        };
        let mut ours = Tree::default();
        for (place, rule) in rules.iter().enumerate() {
            let end = rules.get(place + 1).map(|next| next.bytes.div_ceil(blocks));
            let end = end.filter(|end| *end <= MOST_BYTES);
            let condition = end.map_or_else(|| format!("{size}=any"), |end| format!("{size}<{end}"));
            let way = match rule.way.algorithm {
                0 => own.clone(),
                _ => served(collective, &format!("algorithm=MPIR_{function}_intra_{}", rule.way.name), &own),
            };
            ours.0.push((condition, way));
            if end.is_none() {
                break;
            }
        }
        *place = Tree(vec![
            (format!("comm_size<{ranks}"), own.clone()),
            (format!("comm_size<={ranks}"), ours),
            ("comm_size=any".to_owned(), own),
        ]);
        Ok(())
    }

    /// Writes the tree as a file.
    pub fn text(&self) -> String {
        let mut text = String::new();
        self.write(&mut text);
        text.push('\n');
        // MPICH maps the file and reads to the next byte that is 0, of which there is none behind a full page.
        if text.len().is_multiple_of(4096) {
            text.push('\n');
        }
        text
    }

    fn write(&self, text: &mut String) {
        text.push('{');
        for (place, (name, below)) in self.0.iter().enumerate() {
            *text += if place > 0 { ",\"" } else { "\"" };
            *text += name;
            *text += "\":";
            below.write(text);
        }
        text.push('}');
    }

    /// Writes the tree for people: the collectives that are known here, between the ranks of one
    /// communicator.
    pub fn show(&self) -> String {
        let mut text = String::new();
        for collective in Collective::ALL {
            if let Some(tree) = self.intra(collective) {
                text += &format!("{collective}\n");
                tree.show_below(1, &mut text);
            }
        }
        text
    }

    fn show_below(&self, deep: usize, text: &mut String) {
        for (name, below) in &self.0 {
            *text += &format!("{}{name}\n", "  ".repeat(deep));
            below.show_below(deep + 1, text);
        }
    }

    /// Counts the decisions.
    pub fn count(&self) -> usize {
        let of = |(name, below): &(String, Tree)| {
            if name.starts_with("algorithm=") || name.starts_with("composition=") { 1 } else { below.count() }
        };
        self.0.iter().map(of).sum()
    }
}

/// Reductions in parts are for operations of MPI, with an element for each rank at least.
fn served(collective: Collective, algorithm: &str, own: &Tree) -> Tree {
    let leaf = Tree(vec![(algorithm.to_owned(), Tree::default())]);
    let in_parts = algorithm.contains("reduce_scatter_");
    match collective {
        Collective::Reduce | Collective::Allreduce if in_parts => {
            let long = Tree(vec![("count<pow2".to_owned(), own.clone()), ("count=any".to_owned(), leaf)]);
            Tree(vec![("is_op_built_in=yes".to_owned(), long), ("is_op_built_in=no".to_owned(), own.clone())])
        }
        _ => leaf,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::native::Library;
    use crate::native::Way;

    const OWN: &str = r#"{"collective=bcast":{"comm_type=intra":{"comm_size=pow2":{"algorithm=MPIR_Bcast_intra_binomial":{}},
        "comm_size=any":{"algorithm=MPIR_Bcast_intra_scatter_ring_allgather":{}}},"comm_type=inter":{"algorithm=MPIR_Bcast_inter_flat":{}}},
        "collective=allreduce":{"comm_type=intra":{"algorithm=MPIR_Allreduce_intra_recursive_doubling":{}}},
        "collective=alltoall":{"comm_type=intra":{"is_sendbuf_inplace=yes":{"algorithm=MPIR_Alltoall_intra_pairwise_sendrecv_replace":{}},
        "is_sendbuf_inplace=no":{"algorithm=MPIR_Alltoall_intra_pairwise":{}}}}}"#;

    fn rule(collective: Collective, bytes: u64, name: &str) -> Rule {
        let way = match name {
            "" => Way::STOCK,
            name => Library::Mpich.named(collective, name, 0, 0).unwrap(),
        };
        Rule { bytes, way, because: None }
    }

    #[test]
    fn what_was_decided_stands_in_the_librarys_own_tree() {
        let mut tree = Tree::parse(OWN).unwrap();
        let own = tree.clone();
        let rules =
            [rule(Collective::Broadcast, 0, ""), rule(Collective::Broadcast, 8192, "scatter_ring_allgather")];
        tree.graft(Collective::Broadcast, 6, &rules).unwrap();
        let rules = [rule(Collective::Allreduce, 0, "reduce_scatter_allgather")];
        tree.graft(Collective::Allreduce, 6, &rules).unwrap();
        // 100 bytes for each of 6 ranks are less than that, 101 are not.
        let rules = [rule(Collective::Alltoall, 0, "brucks"), rule(Collective::Alltoall, 601, "pairwise")];
        tree.graft(Collective::Alltoall, 6, &rules).unwrap();
        let again = Tree::parse(&tree.text()).unwrap();
        assert_eq!(again, tree);
        let bcast = again.intra(Collective::Broadcast).unwrap();
        let before = own.intra(Collective::Broadcast);
        assert_eq!((bcast.at("comm_size<6"), bcast.at("comm_size=any")), (before, before));
        let ours = bcast.at("comm_size<=6").unwrap();
        assert_eq!(ours.at("avg_msg_size<8192"), before);
        assert!(
            ours.at("avg_msg_size=any")
                .unwrap()
                .at("algorithm=MPIR_Bcast_intra_scatter_ring_allgather")
                .is_some()
        );
        let shown = again.show();
        for expected in [
            "    is_op_built_in=yes\n",
            "count<pow2\n",
            "avg_msg_size<101\n",
            "MPIR_Alltoall_intra_pairwise_sendrecv_replace",
        ] {
            assert!(shown.contains(expected), "{expected} in {shown}");
        }
        assert!(!again.text().len().is_multiple_of(4096));
        let error = tree.graft(Collective::Gather, 6, &[]).unwrap_err();
        assert!(error.contains("gather: expected comm_type=intra"), "{error}");
    }

    #[test]
    fn the_tree_is_found_in_a_library() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("libmpich.so");
        let other = r#"{"collective=bcast":{"comm_type=intra":{"composition=MPIDI_alpha":{}}}}"#;
        let whole = Collective::ALL.map(|of| {
            let (name, function) = (of.name(), function(of));
            format!(
                r#""collective={name}":{{"comm_type=intra":{{"algorithm=MPIR_{function}_intra_x":{{}}}}}}"#
            )
        });
        let whole = format!("{{{}}}", whole.join(","));
        std::fs::write(&path, format!("\x7fELF{other}\0x\0{whole}\0rest")).unwrap();
        assert_eq!(Tree::of_library(&path).unwrap().text().trim_end(), whole);
        std::fs::write(&path, format!("\x7fELF{other}\0rest")).unwrap();
        assert!(Tree::of_library(&path).unwrap_err().contains("expected MPICH's own decisions"));
    }

    #[test]
    fn mistakes_are_told_with_their_place() {
        for (text, expected) in [
            ("{\"collective=bcast\":{}}", "collective=bcast: expected an algorithm, found nothing"),
            ("{\"collective=bcast\" {}}", "byte 20: expected :, found \"{}}\""),
            ("{\"collective=bcast\":{\"a\":{\"algorithm=x\":{}}}} x", "expected the end"),
            ("{\"other\":{\"algorithm=x\":{}}}", "expected collective=…, found \"other\""),
        ] {
            let error = Tree::parse(text).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        assert!(Tree::parse(&"{\"a\":".repeat(100_000)).unwrap_err().contains("at most 64"));
        assert!(Tree::is_one(" {\n \"collective=x\"") && !Tree::is_one("{\"module\""));
    }

    proptest! {
        #[test]
        fn nothing_panics_whatever_is_read(at in 0usize..600, byte in any::<u8>(), text in "[{}\":, a=]{0,60}") {
            let _ = Tree::parse(&text);
            let mut bytes = OWN.as_bytes().to_vec();
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
            let text = String::from_utf8_lossy(&bytes);
            if let Ok(tree) = Tree::parse(&text) {
                prop_assert_eq!(Tree::parse(&tree.text()), Ok(tree));
            }
        }
    }
}
