//! Extensions that are programs: run without a shell, with the question on standard input and the answer on
//! standard output.

use std::path::Path;
use std::process::Stdio;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

use super::{Client, Extension};
use crate::base::clock::Boxed;
use crate::base::json;
use crate::base::limits::MAX_EXTENSION_BYTES;
use crate::engine::extension::ExtensionCall;

/// A program with its arguments. Its environment has only a `PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramExtension {
    program: String,
    arguments: Vec<String>,
}

/// `PATH` of the program.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

impl ProgramExtension {
    /// Creates an extension from the full path of a program: a search by name could find another program
    /// tomorrow.
    ///
    /// # Errors
    /// Fails with a message when the path is not absolute, or the file does not exist.
    pub fn new(program: &str, arguments: Vec<String>) -> Result<Self, String> {
        let path = Path::new(program);
        if !path.is_absolute() {
            return Err("the path of a program must be absolute".to_owned());
        }
        if !path.is_file() {
            return Err("the program does not exist".to_owned());
        }
        Ok(Self {
            program: program.to_owned(),
            arguments,
        })
    }

    async fn ask(&self, question: &str) -> Result<Value, String> {
        let cannot = |error: std::io::Error| format!("it cannot be run: {error}");
        let mut child = Command::new(&self.program)
            .args(&self.arguments)
            .env_clear()
            .env("PATH", PATH)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // If the caller stops waiting, the program is killed.
            .kill_on_drop(true)
            .spawn()
            .map_err(cannot)?;
        let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("its input and output cannot be opened".to_owned());
        };
        let mut text = Vec::new();
        let most = MAX_EXTENSION_BYTES as u64 + 1;
        let mut output = output.take(most);
        let tell = async {
            // A program may answer without reading the whole question.
            let _ = input.write_all(question.as_bytes()).await;
            drop(input);
        };
        let ((), read) = tokio::join!(tell, output.read_to_end(&mut text));
        read.map_err(cannot)?;
        if text.len() > MAX_EXTENSION_BYTES {
            return Err(format!(
                "its answer has more than {MAX_EXTENSION_BYTES} bytes"
            ));
        }
        let ended = child.wait().await.map_err(cannot)?;
        if !ended.success() {
            return Err(format!("it failed: {ended}"));
        }
        json::read(&text).map_err(|error| format!("its answer is {error}"))
    }
}

impl Extension for ProgramExtension {
    fn call<'a>(&'a self, call: &'a ExtensionCall, _: Client) -> Boxed<'a, Result<Value, String>> {
        let question = call.to_json().to_string();
        Box::pin(async move { self.ask(&question).await })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    async fn ask(script: &str, question: &str) -> Result<Value, String> {
        let arguments = vec!["-c".to_owned(), script.to_owned()];
        let program = ProgramExtension::new("/bin/sh", arguments).unwrap();
        program.ask(question).await
    }

    #[tokio::test]
    async fn a_program_reads_the_question_and_prints_the_answer() {
        let echoed = ask("cat", r#"{"a":1}"#).await;
        assert_eq!(echoed, Ok(json!({"a": 1})));
        let large = format!(r#"{{"a":"{}"}}"#, "x".repeat(100_000));
        assert!(ask("cat", &large).await.is_ok());
        assert_eq!(
            ask("echo true", &large).await,
            Ok(json!(true)),
            "it need not listen"
        );
    }

    #[tokio::test]
    async fn an_invalid_answer_of_a_program_is_an_error() {
        for script in [
            "echo yes",
            "echo true; exit 3",
            "true",
            "kill -9 $$",
            "head -c 300000 /dev/zero",
            r#"echo '{"proceed":false,"proceed":true}'"#,
            r#"echo '{"proceed":true,"data":{"n":123456789012345678901234567890}}'"#,
        ] {
            assert!(ask(script, "{}").await.is_err(), "{script}");
        }
    }

    #[tokio::test]
    async fn a_program_gets_no_environment_but_path() {
        let seen = ask(r"env | grep -v '^PATH=\|^PWD=\|^SHLVL=\|^_=' | wc -l", "{}").await;
        assert_eq!(seen, Ok(json!(0)));
    }

    #[test]
    fn only_an_absolute_path_to_a_file_is_accepted() {
        for bad in ["sh", "./sh", "", "/", "/no/such/program"] {
            assert!(ProgramExtension::new(bad, Vec::new()).is_err(), "{bad}");
        }
    }
}
