//! Folders of Atlases, several at once, and the same Atlas as JSON.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use super::support::root;

/// What a command came to.
struct Said {
    code: i32,
    out: String,
    err: String,
}

fn cra(args: &[&str]) -> Said {
    let output = Command::new(env!("CARGO_BIN_EXE_cra"))
        .env_clear()
        .env("HOME", "/nowhere")
        .stdin(Stdio::null())
        .args(args)
        .output()
        .unwrap();
    Said {
        code: output.status.code().expect("an exit code"),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

fn yaml(id: &str, action: &str) -> String {
    format!(
        "atlas_version: '1.0'\natlas_id: {id}\nversion: '1'\nname: {id}\n\
         default_decision: allow\nactions: [{{ action_id: {action} }}]\n"
    )
}

fn json(id: &str, action: &str) -> String {
    format!(
        r#"{{"atlas_version": "1.0", "atlas_id": "{id}", "version": "1", "name": "{id}",
            "default_decision": "allow", "actions": [{{"action_id": "{action}"}}]}}"#
    )
}

/// A folder with these files.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_folder_stands_for_every_atlas_in_it() {
    let folder = folder(&[
        ("b.yml", &yaml("two", "b.run")),
        ("a.yaml", &yaml("one", "a.run")),
        ("c.json", &json("three", "c.run")),
        (".hidden.yaml", "not an Atlas"),
        ("notes.txt", "not an Atlas"),
    ]);
    fs::create_dir(folder.path().join("deeper.yaml")).unwrap();
    fs::write(folder.path().join("deeper.yaml/d.yaml"), "not an Atlas").unwrap();
    let path = text(folder.path());
    let said = cra(&["atlas", "lint", path]);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{}", said.out);
    let told: Vec<_> = said
        .out
        .lines()
        .map(|line| line.rsplit_once('/').unwrap().1)
        .collect();
    let wanted = [
        "a.yaml: no problems",
        "b.yml: no problems",
        "c.json: no problems",
    ];
    assert_eq!(told, wanted);
    // All of them are in force: each knows an action of its own.
    for action in ["a.run", "b.run", "c.run"] {
        let said = cra(&["atlas", "explain", path, "--action", action]);
        assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    }
    assert_eq!(
        cra(&["atlas", "explain", path, "--action", "d.run"]).code,
        5
    );
    // The console gets as far as looking for a terminal.
    let said = cra(&[
        "--atlas",
        path,
        "--atlas",
        text(&root().join("assets/atlas")),
    ]);
    assert_eq!(said.code, 2, "{}", said.err);
    assert!(said.err.contains("no terminal"), "{}", said.err);
}

#[test]
fn a_folder_without_an_atlas_is_an_error() {
    let folder = folder(&[(".hidden.yaml", ""), ("notes.txt", "")]);
    let path = text(folder.path());
    for args in [vec!["atlas", "lint", path], vec!["--atlas", path]] {
        let said = cra(&args);
        assert_eq!((said.code, said.out.as_str()), (1, ""), "{}", said.err);
        let told = format!("`{path}` has no Atlas in it");
        assert!(said.err.contains(&told), "{}", said.err);
        assert!(said.err.contains("help: "), "{}", said.err);
    }
}

#[test]
fn two_atlases_of_one_name_are_refused_and_both_files_are_named() {
    let folder = folder(&[
        ("a.yaml", &yaml("same", "a.run")),
        ("b.yaml", &yaml("other", "b.run")),
        ("c.json", &json("same", "c.run")),
    ]);
    let path = text(folder.path());
    let both = [format!("{path}/a.yaml"), format!("{path}/c.json")];
    let files = [both[0].as_str(), both[1].as_str()];
    for args in [
        vec!["--atlas", path],
        vec!["--atlas", files[0], "--atlas", files[1]],
        vec!["atlas", "explain", path, "--action", "a.run"],
    ] {
        let said = cra(&args);
        assert_eq!((said.code, said.out.as_str()), (3, ""), "{}", said.err);
        let told = format!("the identifier `same`: `{}` and `{}`", files[0], files[1]);
        assert!(said.err.contains(&told), "{}", said.err);
    }
    let said = cra(&["atlas", "lint", path, "--json"]);
    assert_eq!(said.code, 3);
    let reports: Value = serde_json::from_str(&said.out).unwrap();
    let ok: Vec<_> = (0..3)
        .map(|at| reports[at]["ok"].as_bool().unwrap())
        .collect();
    assert_eq!(ok, [true, true, false]);
    let told = &reports[2]["diagnostics"][0];
    assert_eq!(told["code"], "E032");
    let message = format!("atlas id `same` is also that of `{}`", files[0]);
    assert_eq!(told["message"], message);
    let said = cra(&["atlas", "lint", path]);
    assert!(said.out.contains(&message), "{}", said.out);
    assert!(said.out.contains(&both[1]), "{}", said.out);
}

#[test]
fn a_key_twice_in_json_is_refused_as_in_yaml() {
    let folder = folder(&[(
        "a.json",
        r#"{"atlas_version": "1.0", "atlas_id": "a", "version": "1", "name": "a",
            "default_decision": "deny", "default_decision": "allow"}"#,
    )]);
    let said = cra(&["atlas", "lint", text(&folder.path().join("a.json"))]);
    assert_eq!(said.code, 3, "{}", said.err);
    assert!(said.out.contains("error[E002]"), "{}", said.out);
    assert!(said.out.contains("a.json:2:41"), "{}", said.out);
}
