//! Hooks as Codex itself lists them: which ones it runs, and which it skips.
//!
//! Codex skips hooks that its user did not trust, that changed since, or whose folder is not trusted. Only Codex
//! knows the hashes, so it is asked over `codex app-server`. The answer is bounded in time and size.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;

use serde::Deserialize;
use serde_json::{Value, json};

use super::ANSWER_TIMEOUT;

/// Most bytes that are read from Codex.
const MAX_OUTPUT_BYTES: u64 = 4 * 1024 * 1024;

/// Identifier of the request for the hooks.
const LIST_REQUEST: u64 = 2;

/// A hook, as Codex lists it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListedHook {
    source_path: PathBuf,
    enabled: bool,
    trust_status: String,
}

/// Asks Codex for its hooks in a folder. `None` if there is no `codex`, or it gives no readable answer in time.
pub(super) fn list_hooks(folder: &Path) -> Option<Vec<ListedHook>> {
    let mut server = Command::new(program_on_path("codex")?)
        .arg("app-server")
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let listed = ask(&mut server, folder);
    // The server has no other work; a failure means that it has ended.
    let _ = server.kill();
    let _ = server.wait();
    listed
}

fn ask(server: &mut Child, folder: &Path) -> Option<Vec<ListedHook>> {
    // Codex ends when its input ends, so the input stays open until the answer is there.
    let mut input = server.stdin.take()?;
    let output = server.stdout.take()?;
    let client = json!({"name": "cra-doctor", "version": env!("CARGO_PKG_VERSION")});
    let requests = [
        json!({"id": 1, "method": "initialize", "params": {"clientInfo": client}}),
        json!({"method": "initialized"}),
        json!({"id": LIST_REQUEST, "method": "hooks/list", "params": {"cwds": [folder]}}),
    ];
    for request in requests {
        writeln!(input, "{request}").ok()?;
    }
    input.flush().ok()?;
    let (sender, answer) = mpsc::channel();
    thread::spawn(move || {
        let lines = BufReader::new(output.take(MAX_OUTPUT_BYTES)).lines();
        let mut found = lines
            .map_while(Result::ok)
            .filter_map(|line| serde_json::from_str::<Value>(&line).ok());
        // The receiver may be gone.
        let _ =
            sender.send(found.find(|line| line.get("id").is_some_and(|id| *id == LIST_REQUEST)));
    });
    read_hooks(&answer.recv_timeout(ANSWER_TIMEOUT).ok()??)
}

/// Reads the hooks of all folders in an answer.
fn read_hooks(answer: &Value) -> Option<Vec<ListedHook>> {
    let folders = answer.pointer("/result/data")?.as_array()?;
    let hooks = folders.iter().map(|folder| folder.get("hooks")?.as_array());
    let hooks: Option<Vec<_>> = hooks.collect();
    let hooks = hooks?.into_iter().flatten();
    hooks
        .map(|hook| ListedHook::deserialize(hook).ok())
        .collect()
}

/// Describes why Codex skips hooks of `file`, if it does.
pub(super) fn skipped_hooks(hooks: &[ListedHook], file: &Path) -> Option<&'static str> {
    let mut own = hooks
        .iter()
        .filter(|hook| super::same_file(&hook.source_path, file))
        .peekable();
    if own.peek().is_none() {
        return Some(
            "Codex does not load the hooks: it does not trust the folder, or hooks are switched off in config.toml",
        );
    }
    let own: Vec<_> = own.collect();
    let has = |status: &str| own.iter().any(|hook| hook.trust_status == status);
    if own.iter().any(|hook| !hook.enabled) {
        Some("the hooks are switched off in Codex: open /hooks in Codex, or config.toml")
    } else if has("modified") {
        Some(
            "the hooks changed since Codex trusted them, and it does not run them: open /hooks in Codex and trust them again",
        )
    } else if own
        .iter()
        .any(|hook| !matches!(hook.trust_status.as_str(), "trusted" | "managed"))
    {
        Some("Codex does not trust the hooks yet and does not run them: open /hooks in Codex")
    } else {
        None
    }
}

/// Finds a program in the absolute folders of `PATH`.
fn program_on_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let folders = env::split_paths(&path).filter(|folder| folder.is_absolute());
    let mut programs = folders.map(|folder| folder.join(name));
    programs.find(|program| {
        let found = fs::metadata(program);
        found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(folder: &Path, status: &str, enabled: bool) -> Vec<ListedHook> {
        let hook = json!({"sourcePath": folder.join("hooks.json"), "enabled": enabled, "trustStatus": status, "key": "k"});
        let answer = json!({"id": 2, "result": {"data": [{"cwd": "/p", "hooks": [hook]}]}});
        read_hooks(&answer).unwrap()
    }

    #[test]
    fn only_trusted_hooks_of_the_same_file_count_as_run() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("hooks.json");
        std::fs::write(&file, "{}").unwrap();
        let problem =
            |status, enabled| skipped_hooks(&listed(folder.path(), status, enabled), &file);
        assert_eq!(problem("trusted", true), None);
        assert!(problem("trusted", false).unwrap().contains("switched off"));
        assert!(problem("modified", true).unwrap().contains("changed"));
        assert!(problem("untrusted", true).unwrap().contains("not trust"));
        let other = skipped_hooks(&listed(Path::new("/elsewhere"), "trusted", true), &file);
        assert!(other.unwrap().contains("does not load"));
        assert!(skipped_hooks(&[], &file).is_some());
    }

    #[test]
    fn unreadable_answers_are_no_list() {
        for answer in [
            json!({"error": {}}),
            json!({"result": {"data": [{"hooks": [{}]}]}}),
        ] {
            assert_eq!(read_hooks(&answer), None);
        }
    }
}
