//! Secrets in lists of arguments: `["--password", "hunter2"]`, `["mysql", "-phunter2"]`.
//!
//! Contract: the list is read as the command line that it becomes, so the forms of secrets that are known in texts are
//! known here too. An argument that no shell could run something by is cut as a whole; of another one only the part
//! that the form of the secret covers.

use serde_json::Value;

use super::secret_forms::{self, PLAIN_VALUES};

/// A part of an argument that is left out.
pub(super) struct ArgumentCut {
    /// Place of the argument in its list.
    pub(super) index: usize,
    /// First byte in the argument.
    pub(super) from: usize,
    /// Byte behind the last one.
    pub(super) to: usize,
    /// Form of the secret.
    pub(super) form: &'static str,
}

/// Flags whose next argument is a secret, without the leading hyphens.
const SECRET_FLAGS: [&str; 14] = [
    "password",
    "passwd",
    "pass",
    "passphrase",
    "token",
    "apikey",
    "api-key",
    "api_key",
    "access-token",
    "auth-token",
    "client-secret",
    "secret-key",
    "secret",
    "private-key",
];

/// Characters that end a secret in a text and belong to it in an argument. Each is one byte, as its stand-in is.
const QUOTED: [char; 9] = ['$', ',', '\\', '"', '\'', '[', ']', '{', '}'];

/// Secrets in the texts of a list. `program` is the command that the arguments are for, where it stands apart.
pub(super) fn find(program: Option<&str>, items: &[Value], most: usize) -> Vec<ArgumentCut> {
    let texts: Vec<&str> = items
        .iter()
        .map(|item| item.as_str().unwrap_or_default())
        .collect();
    let mut cuts = after_flags(&texts);
    let (line, starts) = command_line(program, &texts);
    for found in secret_forms::find_secrets(&line, most) {
        for (index, (start, text)) in starts.iter().zip(&texts).enumerate() {
            let end = start + text.len();
            let (from, to) = (found.from.max(*start), found.to.min(end));
            if from >= to {
                continue;
            }
            // One that an argument tells by itself is found there.
            let alone = secret_forms::find_secrets(text, most);
            if !alone.iter().any(|own| own.from + start == found.from) {
                let to = if is_one_word(text) { end } else { to };
                cuts.push(ArgumentCut {
                    index,
                    from: from - start,
                    to: to - start,
                    form: found.form,
                });
            }
        }
    }
    cuts
}

/// Arguments behind a flag that announces a secret.
fn after_flags(texts: &[&str]) -> Vec<ArgumentCut> {
    let pairs = texts.iter().zip(texts.iter().skip(1)).enumerate();
    let secrets = pairs.filter_map(|(at, (flag, value))| {
        let name = flag.strip_prefix('-')?.trim_start_matches('-');
        let name = name.to_ascii_lowercase();
        let is_plain = PLAIN_VALUES
            .iter()
            .any(|plain| value.eq_ignore_ascii_case(plain));
        let is_secret = SECRET_FLAGS.contains(&name.as_str()) && !is_plain;
        let is_value = !value.is_empty() && !value.starts_with('-') && is_one_word(value);
        (is_secret && is_value).then(|| ArgumentCut {
            index: at + 1,
            from: 0,
            to: value.len(),
            form: "secret_argument",
        })
    });
    secrets.collect()
}

/// The command line, and the place in it where each argument begins.
fn command_line(program: Option<&str>, texts: &[&str]) -> (String, Vec<usize>) {
    let mut line = String::new();
    if let Some(program) = program {
        line.push_str(program);
        line.push(' ');
    }
    let mut starts = Vec::with_capacity(texts.len());
    for text in texts {
        starts.push(line.len());
        if is_one_word(text) {
            // No shell reads these in a word of its own: they are a part of the secret.
            let plain = |c: char| if QUOTED.contains(&c) { '_' } else { c };
            line.extend(text.chars().map(plain));
        } else {
            line.push_str(text);
        }
        line.push(' ');
    }
    (line, starts)
}

/// True when a shell would take an argument for one word, and run nothing by it.
fn is_one_word(text: &str) -> bool {
    !text.contains(|c: char| {
        c.is_whitespace() || matches!(c, ';' | '|' | '&' | '<' | '>' | '(' | ')' | '`')
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{MARKER, Redactor};
    use super::*;

    fn redacted(params: &Value) -> Value {
        Redactor::default().redact_params("action_params", params)
    }

    #[test]
    fn secrets_in_lists_of_arguments_are_left_out() {
        let cases = [
            (
                json!(["--password", "hunter2"]),
                json!(["--password", MARKER]),
            ),
            (
                json!(["tool", "--token", "x;y"]),
                json!(["tool", "--token", "x;y"]),
            ),
            (json!(["-password", "$ecret"]), json!(["-password", MARKER])),
            (
                json!(["mysql", "-phunter2", "db"]),
                json!(["mysql", format!("-p{MARKER}"), "db"]),
            ),
            (
                json!(["mysql", "-p$unny,day"]),
                json!(["mysql", format!("-p{MARKER}")]),
            ),
            (
                json!(["curl", "-u", "ann:hunter2", "https://x.example"]),
                json!(["curl", "-u", format!("ann:{MARKER}"), "https://x.example"]),
            ),
            (
                json!(["bash", "-c", "mysql -phunter2; rm -rf /"]),
                json!(["bash", "-c", format!("mysql -p{MARKER}; rm -rf /")]),
            ),
            (
                json!(["--password", "required"]),
                json!(["--password", "required"]),
            ),
            (json!(["a", 1, null, "b"]), json!(["a", 1, null, "b"])),
        ];
        for (sent, kept) in cases {
            assert_eq!(redacted(&json!({ "argv": sent }))["argv"], kept, "{sent}");
        }
    }

    #[test]
    fn a_command_that_stands_apart_counts_for_its_arguments() {
        let sent = json!({"command": "curl", "args": ["-u", "ann:hunter2"]});
        let kept = json!({"command": "curl", "args": ["-u", format!("ann:{MARKER}")]});
        assert_eq!(redacted(&sent), kept);
        let other = json!({"command": "grep", "args": ["-u", "ann:hunter2"]});
        assert_eq!(redacted(&other), other);
    }

    #[test]
    fn a_secret_of_an_argument_is_left_out_of_texts_that_quote_it() {
        let mut redactor = Redactor::default();
        redactor.redact_params("action_params", &json!({"argv": ["--password", "hunter2"]}));
        assert_eq!(
            redactor.redact_text("reason", "no hunter2 here"),
            format!("no {MARKER} here")
        );
    }
}
