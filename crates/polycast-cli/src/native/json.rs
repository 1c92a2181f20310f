//! The same by names, as Open MPI's main branch reads it (`coll_tuned_dynamic_rules_filename` with `coll_tuned_dynamic_rules_fileformat json`).

use polycast_core::collective::Collective;
use serde_json::{Value, json};

use super::{OfCollective, OfRanks, Rule, Rules, Way};

const VERSION: u64 = 3;

/// The member of that name, as a list.
fn list<'a>(of: &'a Value, name: &str) -> Result<&'a [Value], String> {
    let found = of.get(name).and_then(Value::as_array);
    found.map(Vec::as_slice).ok_or_else(|| format!("expected {name}, a list"))
}

/// The member of that name, as a number that fits; 0 if there is none.
fn number<N: TryFrom<u64> + Default>(of: &Value, name: &str) -> Result<N, String> {
    let Some(value) = of.get(name) else { return Ok(N::default()) };
    let fitting = value.as_u64().and_then(|number| N::try_from(number).ok());
    fitting.ok_or_else(|| format!("{name}: expected a number of {} bits, found {value}", 8 * size_of::<N>()))
}

/// What comes behind the last that something is for; `None` if it is for all up to the next one.
fn end<N: TryFrom<u64> + Default>(of: &Value, name: &str) -> Result<Option<N>, String> {
    match of.get(name).and_then(Value::as_u64) {
        Some(last) => Ok(last.checked_add(1).and_then(|end| N::try_from(end).ok())),
        None if matches!(of.get(name), None | Some(Value::String(_))) => Ok(None),
        None => number(of, name).map(Some),
    }
}

/// In order, each with its begin and end. Where one ends before the next begins, or with nothing behind it, the library decides: our rules and the
/// older format know begins only, so that is a rule of its own.
fn without_gaps<T, N: Ord + Copy>(all: Vec<(T, N, Option<N>)>, stock: impl Fn(N) -> T) -> Vec<T> {
    let begins: Vec<N> = all.iter().map(|(_, begin, _)| *begin).collect();
    let mut filled = Vec::new();
    for (place, (one, _, end)) in all.into_iter().enumerate() {
        filled.push(one);
        let is_gap = |end: &N| begins.get(place + 1).is_none_or(|next| end < next);
        filled.extend(end.filter(is_gap).map(&stock));
    }
    filled
}

fn rule(collective: Collective, of: &Value) -> Result<Rule, String> {
    let (fan, segment) = (number(of, "faninout")?, number(of, "seg_size")?);
    let way = match &of["alg"] {
        Value::String(name) => Way::named(collective, name, fan, segment),
        other => {
            other.as_u64().and_then(|number| Way::new(collective, u32::try_from(number).ok()?, fan, segment))
        }
    };
    let way = way.ok_or_else(|| format!("{collective} has no algorithm {} that is known here", of["alg"]))?;
    Ok(Rule { bytes: number(of, "msg_size_min")?, way, because: None })
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
        let of_bytes = |of: &Value| {
            let rule = rule(collective, of)?;
            let begin = rule.bytes;
            Ok((rule, begin, end(of, "msg_size_max")?))
        };
        let of_ranks = |of: &Value| {
            let rules = list(of, "rules")?.iter().map(of_bytes).collect::<Result<_, String>>()?;
            let (ranks, rules) = (number(of, "comm_size_min")?, without_gaps(rules, Rule::stock));
            Ok((OfRanks { ranks, rules }, ranks, end(of, "comm_size_max")?))
        };
        let communicators =
            list(&file["collectives"], name)?.iter().map(of_ranks).collect::<Result<_, String>>()?;
        let communicators = without_gaps(communicators, OfRanks::stock);
        rules.collectives.push(OfCollective { collective, communicators });
    }
    rules.collectives.sort_by_key(|one| super::names::number_of(one.collective));
    Ok(rules)
}

pub fn write(rules: &Rules) -> String {
    let until = |next: Option<u64>| next.map_or_else(|| json!("inf"), |next| json!(next - 1));
    let of_collective = |of: &OfCollective| {
        let communicators = of.communicators.iter().enumerate().map(|(place, of_ranks)| {
            let rules = of_ranks.rules.iter().enumerate().map(|(place, rule)| {
                let most = until(of_ranks.rules.get(place + 1).map(|next| next.bytes));
                json!({
                    "msg_size_min": rule.bytes,
                    "msg_size_max": most,
                    "alg": rule.way.name,
                    "faninout": rule.way.fan,
                    "seg_size": rule.way.segment,
                })
            });
            let most = until(of.communicators.get(place + 1).map(|next| next.ranks.into()));
            json!({"comm_size_min": of_ranks.ranks, "comm_size_max": most, "rules": rules.collect::<Vec<_>>()})
        });
        (of.collective.to_string(), Value::from(communicators.collect::<Vec<_>>()))
    };
    let collectives: serde_json::Map<String, Value> = rules.collectives.iter().map(of_collective).collect();
    let file = json!({"rule_file_version": VERSION, "module": "tuned", "collectives": collectives});
    format!("{file:#}\n")
}
