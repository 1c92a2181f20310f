//! `polycast run --print-env`: the variables of the ranks, in a form that a launcher gets through a shell unchanged.

use crate::network::Variables;

/// How the variables are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Form {
    /// Words without quotes: srun … env $(polycast run --print-env) ./a.out; before each program of several
    Words,
    /// Words with quotes, for any value: eval "srun … env $(polycast run --print-env=sh) ./a.out"
    Sh,
    /// An option of srun, where no value has a comma: srun … "$(polycast run --print-env=srun)" ./a.out
    Srun,
    /// A JSON object
    Json,
}

/// A value that does not get through.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{option}: {name}={value} has {character:?}, which {reader}; use the form with quotes: \
     eval \"srun … env $(polycast run --print-env=sh) ./a.out\""
)]
pub struct FormError {
    option: &'static str,
    name: String,
    value: String,
    character: char,
    reader: &'static str,
}

/// The variables in this form, with a line's end.
pub fn write(form: Form, variables: &Variables) -> Result<String, FormError> {
    let words = |separator, quoted: fn(&str) -> String| {
        let words = variables.iter().map(|(name, value)| format!("{name}={}", quoted(value)));
        words.collect::<Vec<_>>().join(separator)
    };
    let line = match form {
        Form::Words => {
            require(variables, "--print-env", passes_unquoted, "a shell splits or expands in $(…)")?;
            words(" ", str::to_owned)
        }
        Form::Sh => words(" ", |value| shell_words::quote(value).into_owned()),
        Form::Srun => {
            require(variables, "--print-env=srun", passes_export, "srun does not take in --export")?;
            format!("--export=ALL,{}", words(",", str::to_owned))
        }
        Form::Json => {
            let object = variables.iter().map(|(name, value)| (name.clone(), value.as_str().into()));
            serde_json::Value::Object(object.collect()).to_string()
        }
    };
    Ok(line + "\n")
}

/// An example of a command line that takes this form; `None` for JSON.
pub fn example(form: Form) -> Option<&'static str> {
    match form {
        Form::Words => Some("srun … env $(polycast run --print-env) ./a.out"),
        Form::Sh => Some("eval \"srun … env $(polycast run --print-env=sh) ./a.out\""),
        Form::Srun => Some("srun … \"$(polycast run --print-env=srun)\" ./a.out"),
        Form::Json => None,
    }
}

fn require(
    variables: &Variables,
    option: &'static str,
    passes: fn(char) -> bool,
    reader: &'static str,
) -> Result<(), FormError> {
    for (name, value) in variables {
        if let Some(character) = value.chars().find(|character| !passes(*character)) {
            return Err(FormError { option, name: name.clone(), value: value.clone(), character, reader });
        }
    }
    Ok(())
}

/// Whether every shell leaves a character alone in what an unquoted `$(…)` gave: no white space, no pattern, no quote.
fn passes_unquoted(character: char) -> bool {
    character.is_alphanumeric() || "_-+.,:=/@%^#~".contains(character)
}

/// Whether srun leaves a character alone in a value of `--export`: it splits at commas and pairs quotes.
fn passes_export(character: char) -> bool {
    !character.is_control() && !",'\"".contains(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(form: Form, value: &str) -> Result<String, String> {
        let variables = vec![("A".to_owned(), "1".to_owned()), ("B".to_owned(), value.to_owned())];
        write(form, &variables).map_err(|error| error.to_string())
    }

    #[test]
    fn what_needs_no_quotes_has_none() {
        for value in
            ["chain:segment=8KiB", "multicast-push:parity=5%", "^docker", "=eth0", "/a/b_c.so:/d.so", "é"]
        {
            assert_eq!(written(Form::Words, value), Ok(format!("A=1 B={value}\n")));
        }
    }

    #[test]
    fn what_needs_quotes_is_refused_with_the_form_that_has_them() {
        for value in ["a b", "a*", "[a]", "a?", "it's", "$HOME", "`ls`", "a\\b", "a\nb", "{a,b}"] {
            let error = written(Form::Words, value).unwrap_err();
            assert!(error.contains("B=") && error.contains("--print-env=sh"), "{value}: {error}");
        }
        assert_eq!(written(Form::Sh, "it's a"), Ok("A=1 B='it'\\''s a'\n".to_owned()));
    }

    #[test]
    fn srun_takes_no_commas_and_no_quotes() {
        assert_eq!(written(Form::Srun, "a b*"), Ok("--export=ALL,A=1,B=a b*\n".to_owned()));
        for value in ["a,b", "it's", "\"", "a\nb"] {
            assert!(written(Form::Srun, value).unwrap_err().contains("--print-env=sh"), "{value}");
        }
    }

    #[test]
    fn json_takes_anything() {
        assert_eq!(written(Form::Json, "a\"b\n"), Ok("{\"A\":\"1\",\"B\":\"a\\\"b\\n\"}\n".to_owned()));
    }
}
