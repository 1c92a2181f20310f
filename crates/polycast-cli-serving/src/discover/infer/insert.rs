use super::tree::Tree;
use super::vote::Voters;
use super::{Evidence, Inferred, Quartet};

/// Finds the tree of `hosts` hosts. `ask` answers a question, perhaps wrongly; each is asked until one answer leads by two.
pub fn infer<E>(hosts: usize, ask: impl FnMut(Quartet) -> Result<bool, E>) -> Result<Inferred, E> {
    let mut tree = Tree::of_one_node(0..hosts.min(3));
    let mut voters = Voters::new(ask);
    for newcomer in 3..hosts {
        insert(&mut tree, newcomer, &mut voters)?;
    }
    recheck(&mut tree, hosts, &mut voters)?;
    let witnesses = confirm(&mut tree, &mut voters)?;
    Ok(rooted(&tree, hosts, &witnesses, voters.answers))
}

/// ```text
///   p ─┐      e       ┌─ …            p, q │ x, r : x is behind e, seen from v
///      v ══════════ w
///   q ─┘              └─ r  x?        then the same seen from w: if x is behind e there too, it is in its middle
/// ```
fn insert<E, A>(tree: &mut Tree, x: usize, voters: &mut Voters<A>) -> Result<(), E>
where
    A: FnMut(Quartet) -> Result<bool, E>,
{
    let (mut v, mut came_from) = (0, None);
    'walk: loop {
        let ways: Vec<usize> = tree.nodes[v].neighbours.iter().map(|(next, _)| *next).collect();
        for w in ways.into_iter().filter(|w| Some(*w) != came_from) {
            let (leads_to_x, forth) = is_behind(tree, v, w, x, voters)?;
            if !leads_to_x {
                continue;
            }
            let (is_between, back) = is_behind(tree, w, v, x, voters)?;
            if is_between {
                tree.split_edge(v, w, x, [forth, back]);
                return Ok(());
            }
            tree.support(v, w, forth);
            (v, came_from) = (w, Some(v));
            continue 'walk;
        }
        break;
    }
    for host in tree.nodes[v].hosts.clone() {
        let Some(others) = tree.two_apart(v, None, Some(host)) else { continue };
        let (are_apart, evidence) = voters.separated([host, x], others)?;
        if are_apart {
            tree.split_off(v, host, x, evidence);
            return Ok(());
        }
    }
    tree.nodes[v].hosts.push(x);
    Ok(())
}

/// Whether `x` is behind a link on the way from `v` to `w`.
fn is_behind<E, A>(
    tree: &Tree,
    v: usize,
    w: usize,
    x: usize,
    voters: &mut Voters<A>,
) -> Result<(bool, Evidence), E>
where
    A: FnMut(Quartet) -> Result<bool, E>,
{
    match tree.two_apart(v, Some(w), Some(x)) {
        Some(apart) => voters.separated(apart, [x, tree.host_behind(v, w)]),
        None => Ok((false, Evidence::default())),
    }
}

/// Asks for every host whether it is not behind a link beside its switch after all; if so, it is inserted once more. A host
/// that came when the link was not known yet had one chance only to show it.
fn recheck<E, A>(tree: &mut Tree, hosts: usize, voters: &mut Voters<A>) -> Result<(), E>
where
    A: FnMut(Quartet) -> Result<bool, E>,
{
    for host in 0..hosts {
        let Some(v) = tree.node_of(host) else { continue };
        let ways: Vec<usize> = tree.nodes[v].neighbours.iter().map(|(next, _)| *next).collect();
        for w in ways {
            if is_behind(tree, v, w, host, voters)?.0 && tree.take_out(v, host) {
                insert(tree, host, voters)?;
                break;
            }
        }
    }
    Ok(())
}

/// Asks once more for every edge, with hosts that part at its two ends; one that is not confirmed is taken away. Returns
/// the quartets.
fn confirm<E, A>(tree: &mut Tree, voters: &mut Voters<A>) -> Result<Vec<(usize, usize, Quartet)>, E>
where
    A: FnMut(Quartet) -> Result<bool, E>,
{
    let mut witnesses = Vec::new();
    // A merge renames nodes, so the edges are looked at anew after it.
    while let Some((a, b)) = tree
        .edges()
        .into_iter()
        .find(|(a, b)| !witnesses.iter().any(|(one, other, _)| (one, other) == (a, b)))
    {
        let sides = tree.two_apart(a, Some(b), None).zip(tree.two_apart(b, Some(a), None));
        if let Some((near, far)) = sides {
            let (is_there, evidence) = voters.separated(near, far)?;
            if is_there {
                tree.support(a, b, evidence);
                witnesses.push((a, b, Quartet { near, far }));
                continue;
            }
        }
        tree.merge(a, b);
        // What was said of edges of `b` is asked again under their new name.
        witnesses.retain(|(one, other, _)| *one != b && *other != b);
    }
    Ok(witnesses)
}

/// Hangs the tree up at its middle.
fn rooted(tree: &Tree, hosts: usize, witnesses: &[(usize, usize, Quartet)], answers: usize) -> Inferred {
    let walk = tree.walk(tree.middle());
    let position = |node: usize| walk.iter().position(|(other, ..)| *other == node);
    let mut inferred = Inferred {
        parent: Vec::new(),
        switch_of: vec![0; hosts],
        evidence: Vec::new(),
        witness: Vec::new(),
        answers,
    };
    for (index, (node, above, _)) in walk.iter().enumerate() {
        let neighbours = &tree.nodes[*node].neighbours;
        let link = above.and_then(|above| neighbours.iter().find(|(next, _)| *next == above));
        let is_between = |(a, b, _): &&(usize, usize, Quartet)| {
            above.is_some_and(|above| [(*a, *b), (*b, *a)].contains(&(*node, above)))
        };
        inferred.parent.push(above.and_then(position));
        inferred.evidence.push(link.map(|(_, evidence)| *evidence).unwrap_or_default());
        inferred.witness.push(witnesses.iter().find(is_between).map(|(.., quartet)| *quartet));
        for &host in &tree.nodes[*node].hosts {
            inferred.switch_of[host] = index;
        }
    }
    inferred
}
