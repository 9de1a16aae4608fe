//! A reader in another language, which shares no line with the program: it agrees about every attack.

use std::fs;
use std::path::Path;
use std::process::Command;

use cra_core::trace::jsonl;

use super::{Copy, Knows, Scene, attacks};
use crate::support::root;

/// Runs the independent verifier on an export, with a head that was kept elsewhere if there is one.
fn sound(folder: &Path, export: &str, head: Option<&str>) -> (bool, String) {
    let (file, known) = (folder.join("export.jsonl"), folder.join("head"));
    fs::write(&file, export).unwrap();
    let mut reader = Command::new("python3");
    reader.arg(root().join("tests/data/verify.py")).arg(file);
    if let Some(head) = head {
        fs::write(&known, head).unwrap();
        reader.arg(known);
    }
    let output = reader
        .output()
        .expect("these tests need `python3` on the PATH: it reads the record independently");
    let reply = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(reply).unwrap())
}

#[tokio::test]
async fn independent_verifier_reaches_the_same_verdicts() {
    let scene = Scene::new().await;
    let folder = tempfile::tempdir().unwrap();
    let head = scene.copy().seals.values().next_back().unwrap().clone();
    for (name, ways) in attacks(&scene).await {
        for copy in ways {
            let export = copy.export();
            let ours = jsonl::verify(export.as_bytes(), scene.trust(Knows::Nothing)).is_sound();
            let (theirs, reply) = sound(folder.path(), &export, None);
            assert_eq!(theirs, ours, "{name}: {reply}");
            let ours = jsonl::verify(export.as_bytes(), scene.trust(Knows::Head)).is_sound();
            let (theirs, reply) = sound(folder.path(), &export, Some(&head));
            assert_eq!(theirs, ours, "{name} with a head: {reply}");
        }
    }
    let honest: Copy = scene.copy();
    let (_, reply) = sound(folder.path(), &honest.export(), Some(&head));
    let (lines, size) = (
        honest.records.len(),
        honest.seals.keys().next_back().unwrap(),
    );
    // The head that was signed last is that of the whole log: the same name, size and root.
    let signed: Vec<_> = head.lines().take(3).collect();
    assert_eq!(reply, format!("ok {lines}\n{}\n", signed.join("\n")));
    assert_eq!(signed[1], size.to_string());
}
