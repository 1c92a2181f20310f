//! The same by names, as Open MPI 6 reads it (ompi/mca/coll/tuned/coll_tuned_dynamic_file.c and coll_tuned_dynamic_rules.c): of a collective the
//! first entry that a communicator suits decides, and of its rules the first that the bytes suit; where none does, the library.

use polycast_core::collective::Collective;
use serde_json::{Value, json};

use super::{OfCollective, OfRanks, Placement, Rule, Rules, Way};

const VERSION: u64 = 3;

/// The member of that name, as a list.
fn list<'a>(of: &'a Value, name: &str) -> Result<&'a [Value], String> {
    let found = of.get(name).and_then(Value::as_array);
    found.map(Vec::as_slice).ok_or_else(|| format!("expected {name}, a list"))
}

/// Reads the member of that name as a number that fits; 0 if there is no such member.
fn number<N: TryFrom<u64> + Default>(of: &Value, name: &str) -> Result<N, String> {
    let Some(value) = of.get(name) else { return Ok(N::default()) };
    let fitting = value.as_u64().and_then(|number| N::try_from(number).ok());
    fitting.ok_or_else(|| format!("{name}: expected a number of {} bits, found {value}", 8 * size_of::<N>()))
}

/// Reads the last number of a range and returns the number behind it; `None` if the range has no
/// end.
fn end<N: TryFrom<u64>>(of: &Value, name: &str) -> Result<Option<N>, String> {
    match &of[name] {
        Value::Null => Ok(None),
        Value::String(word) if ["inf", "Inf", "INF"].contains(&&word[..]) => Ok(None),
        Value::Number(last) if last.is_u64() => {
            Ok(last.as_u64().and_then(|last| N::try_from(last.checked_add(1)?).ok()))
        }
        other => Err(format!("{name}: expected a number or \"inf\", found {other}")),
    }
}

/// A value for the numbers from the first up to, not including, the second, if the range has an
/// end.
type Ranged<T, N> = (N, Option<N>, T);

/// Converts ranges to beginnings: which entry holds from which value on, from 0 on. Ranges may
/// overlap and leave gaps: the first that a value lies in decides, and the library where there is
/// none. Our rules and the older format know beginnings only.
fn from_each<T, N: Ord + Copy + Default>(ranged: &[Ranged<T, N>]) -> Vec<(N, Option<&T>)> {
    let ends = ranged.iter().flat_map(|(begin, end, _)| [Some(*begin), *end]);
    let mut begins: Vec<N> = ends.flatten().chain([N::default()]).collect();
    begins.sort_unstable();
    begins.dedup();
    let at = |value: N| {
        let holds = |(begin, end, _): &&Ranged<T, N>| *begin <= value && end.is_none_or(|end| value < end);
        ranged.iter().find(holds).map(|(.., it)| it)
    };
    let mut found: Vec<(N, Option<&T>)> = begins.into_iter().map(|value| (value, at(value))).collect();
    found.dedup_by(|later, earlier| later.1.map(std::ptr::from_ref) == earlier.1.map(std::ptr::from_ref));
    found
}

fn way(collective: Collective, of: &Value) -> Result<Way, String> {
    let (fan, segment) = (number(of, "faninout")?, number(of, "seg_size")?);
    if number::<u64>(of, "reqs")? > 0 {
        return Err(format!(
            "{collective}: expected rules without reqs, which nothing here knows of, found {}",
            of["reqs"]
        ));
    }
    let way = match &of["alg"] {
        Value::String(name) => Way::named(collective, name, fan, segment),
        other => {
            other.as_u64().and_then(|number| Way::new(collective, u32::try_from(number).ok()?, fan, segment))
        }
    };
    way.ok_or_else(|| format!("{collective} has no algorithm {} that is known here", of["alg"]))
}

/// Reads the rules of a collective: which way serves which bytes.
fn rules(collective: Collective, of: &Value) -> Result<Vec<Rule>, String> {
    let one = |of: &Value| Ok((number(of, "msg_size_min")?, end(of, "msg_size_max")?, way(collective, of)?));
    let ways = list(of, "rules")?.iter().map(one).collect::<Result<Vec<_>, String>>()?;
    let rule = |(bytes, way): (u64, Option<&Way>)| {
        way.map_or_else(|| Rule::stock(bytes), |way| Rule { way: *way, ..Rule::stock(bytes) })
    };
    Ok(from_each(&ways).into_iter().map(rule).collect())
}

fn placement(of: &Value) -> Result<Placement, String> {
    const NAME: &str = "comm_rank_distribution";
    let known = Placement::ALL.into_iter().find(|known| of[NAME] == known.name());
    let known = known.or_else(|| of.get(NAME).is_none().then_some(Placement::Any));
    known.ok_or_else(|| {
        let names = Placement::ALL.map(Placement::name).join(", ");
        format!("{NAME}: expected one of {names}, found {}", of[NAME])
    })
}

/// Reads the rules of a collective by placement and number of ranks. Of each placement the first
/// entry for it and a number of ranks decides. If all placements have the same rules, none has
/// rules of its own.
fn communicators(collective: Collective, list: &[Value]) -> Result<Vec<OfRanks>, String> {
    let one = |of: &Value| {
        let ranks = (number(of, "comm_size_min")?, end(of, "comm_size_max")?);
        Ok((placement(of)?, (ranks.0, ranks.1, rules(collective, of)?)))
    };
    let all = list.iter().map(one).collect::<Result<Vec<_>, String>>()?;
    let of_placement = |placement: Placement| -> Vec<OfRanks> {
        let is_for_it = |(of, _): &&(Placement, _)| [placement, Placement::Any].contains(of);
        let ranged: Vec<Ranged<Vec<Rule>, u32>> =
            all.iter().filter(is_for_it).map(|(_, one)| one.clone()).collect();
        let of_ranks = |(ranks, rules): (u32, Option<&Vec<Rule>>)| match rules {
            Some(rules) => OfRanks::new(ranks, rules.clone()),
            None => OfRanks::stock(ranks),
        };
        from_each(&ranged).into_iter().map(of_ranks).collect()
    };
    let [own, single, any] = Placement::ALL.map(of_placement);
    if own == any && single == any {
        return Ok(any);
    }
    let placed = Placement::ALL.into_iter().zip([own, single, any]);
    Ok(placed.flat_map(|(placement, of)| of.into_iter().map(move |of| OfRanks { placement, ..of })).collect())
}

pub fn parse(text: &str) -> Result<Rules, String> {
    let file: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let (version, module) = (&file["rule_file_version"], &file["module"]);
    if version.as_u64() != Some(VERSION) || module.as_str() != Some("tuned") {
        let expected = format!("expected rule_file_version {VERSION} and module tuned");
        return Err(format!("{expected}, found {version} and {module}"));
    }
    let mut rules = Rules::default();
    let all = file["collectives"].as_object().ok_or("expected collectives, an object")?;
    for name in all.keys() {
        let collective: Collective =
            name.parse().map_err(|_| format!("collective {name:?} is none that is known here"))?;
        let communicators = communicators(collective, list(&file["collectives"], name)?)?;
        rules.collectives.push(OfCollective { collective, communicators });
    }
    rules.collectives.sort_by_key(|one| super::names::number_of(one.collective));
    Ok(rules)
}

/// Writes the end of a range under `name`, and nothing if there is no end: Open MPI takes a
/// communicator's "inf" for -1.
fn until(of: &mut Value, name: &str, next: Option<u64>) {
    if let Some(next) = next {
        of[name] = json!(next - 1);
    }
}

pub fn write(rules: &Rules) -> String {
    let of_collective = |of: &OfCollective| {
        let communicators = of.communicators.iter().enumerate().map(|(place, of_ranks)| {
            let rules = of_ranks.rules.iter().enumerate().map(|(place, rule)| {
                let mut one = json!({
                    "msg_size_min": rule.bytes,
                    "alg": rule.way.name_in_json(of.collective),
                    "faninout": rule.way.fan,
                    "seg_size": rule.way.segment,
                });
                until(&mut one, "msg_size_max", of_ranks.rules.get(place + 1).map(|next| next.bytes));
                one
            });
            let mut one = json!({"comm_size_min": of_ranks.ranks, "rules": rules.collect::<Vec<_>>()});
            if of_ranks.placement != Placement::Any {
                one["comm_rank_distribution"] = json!(of_ranks.placement.name());
            }
            let next = of.communicators.get(place + 1).filter(|next| next.placement == of_ranks.placement);
            until(&mut one, "comm_size_max", next.map(|next| next.ranks.into()));
            one
        });
        (of.collective.to_string(), Value::from(communicators.collect::<Vec<_>>()))
    };
    let collectives: serde_json::Map<String, Value> = rules.collectives.iter().map(of_collective).collect();
    let file = json!({"rule_file_version": VERSION, "module": "tuned", "collectives": collectives});
    format!("{file:#}\n")
}
