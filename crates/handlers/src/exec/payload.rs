//! What a job asks for.
//!
//! The environment is where a list of allowed programs leaks: a variable that tells a loader or an interpreter what to load makes
//! any program out of an allowed one. Those that are known to are refused.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use crate::exec::settings::ExecSettings;

const MAX_ARGS: usize = 1_000;
const MAX_VARIABLES: usize = 100;
const PREFIX_OF_ROTA: &str = "ROTA_";
/// What a loader or an interpreter obeys, as the beginning of a name.
const OBEYED_PREFIXES: [&str; 14] = [
    "BASH_",
    "CLASSPATH",
    "DOTNET_",
    "GCONV_",
    "GIT_",
    "GLIBC_",
    "JAVA_",
    "JDK_",
    "LD_",
    "LUA_",
    "NODE_",
    "PERL",
    "PYTHON",
    "RUBY",
];
/// The same, as the whole name.
const OBEYED: [&str; 14] = [
    "BASHOPTS",
    "ENV",
    "EDITOR",
    "GEM_HOME",
    "GEM_PATH",
    "IFS",
    "LESSOPEN",
    "PAGER",
    "PATH",
    "PHPRC",
    "PS4",
    "SHELLOPTS",
    "VISUAL",
    "_JAVA_OPTIONS",
];

pub(super) fn schema() -> Value {
    json!({
        "type": "object",
        "required": ["program"],
        "properties": {
            "program": {"type": "string"},
            "args": {"type": "array", "maxItems": MAX_ARGS, "items": {"type": "string"}},
            "stdin": {"type": "string"},
            "env": {
                "type": "object",
                "maxProperties": MAX_VARIABLES,
                "propertyNames": {"pattern": "^[A-Z_][A-Z0-9_]*$"},
                "additionalProperties": {"type": "string"},
            },
        },
        "additionalProperties": false,
    })
}

/// A payload, read and checked.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) name: String,
    pub(super) program: PathBuf,
    pub(super) args: Vec<String>,
    pub(super) stdin: Option<String>,
    pub(super) env: Vec<(String, String)>,
}

impl Order {
    /// Or what is wrong with the payload.
    pub(super) fn read(payload: &Map<String, Value>, settings: &ExecSettings) -> Result<Self, String> {
        let name = payload.get("program").and_then(Value::as_str).ok_or("the payload has no program")?;
        let args = payload.get("args").and_then(Value::as_array).into_iter().flatten();
        let args: Option<Vec<_>> = args.map(|arg| plain(Some(arg))).collect();
        let env = payload.get("env").and_then(Value::as_object).into_iter().flatten();
        Ok(Self {
            name: name.to_owned(),
            program: settings.path(name)?.to_owned(),
            args: args.ok_or("args must be text without NUL")?,
            stdin: payload.get("stdin").and_then(Value::as_str).map(str::to_owned),
            env: env.map(|(name, value)| variable(name, value)).collect::<Result<_, _>>()?,
        })
    }
}

/// Text that can be handed to a program.
fn plain(value: Option<&Value>) -> Option<String> {
    value?.as_str().filter(|text| !text.contains('\0')).map(str::to_owned)
}

fn variable(name: &str, value: &Value) -> Result<(String, String), String> {
    let mut bytes = name.bytes();
    let begins = bytes.next().is_some_and(|byte| byte.is_ascii_uppercase() || byte == b'_');
    if !begins || !bytes.all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_') {
        return Err(format!("env: {name:?} is no name: capital letters, digits and '_' make one"));
    }
    if name.starts_with(PREFIX_OF_ROTA) {
        return Err(format!("env: {name} is Rota's to set"));
    }
    if OBEYED.contains(&name) || OBEYED_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
        return Err(format!("env: {name} could make another program of this one, and cannot be given"));
    }
    let value = plain(Some(value)).ok_or_else(|| format!("env: {name} must be text without NUL"))?;
    Ok((name.to_owned(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(payload: Value) -> Result<Order, String> {
        let programs = [("sh".to_owned(), "/bin/sh".into())].into();
        Order::read(payload.as_object().unwrap(), &ExecSettings::new(programs).unwrap())
    }

    #[test]
    fn what_is_asked_for_is_read() {
        let order =
            read(json!({"program": "sh", "args": ["-c", ""], "stdin": "x", "env": {"A_1": "b"}})).unwrap();
        assert_eq!((order.args.len(), order.stdin.as_deref(), order.env.len()), (2, Some("x"), 1));
        assert_eq!(order.program, PathBuf::from("/bin/sh"));
    }

    #[test]
    fn what_could_make_another_program_of_it_is_refused() {
        for name in [
            "LD_PRELOAD",
            "PATH",
            "BASH_ENV",
            "ENV",
            "PERL5OPT",
            "PYTHONPATH",
            "NODE_OPTIONS",
            "IFS",
            "ROTA_JOB_ID",
            "ROTA_X",
            "lower",
            "1A",
            "A-B",
            "",
            "A=B",
            "A\n",
        ] {
            assert!(read(json!({"program": "sh", "env": {name: "x"}})).is_err(), "{name}");
        }
        assert!(read(json!({"program": "sh", "env": {"A": "\u{0}"}})).is_err());
        assert!(read(json!({"program": "sh", "args": ["\u{0}"]})).is_err());
        assert!(read(json!({"program": "bash"})).unwrap_err().contains("allowed are: sh"));
    }
}
