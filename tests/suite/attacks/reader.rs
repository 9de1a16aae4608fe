//! A reader in another language, which shares no line with the program: it agrees about every attack.

use std::fs;
use std::path::Path;
use std::process::Command;

use cra_core::trace::jsonl;

use super::{Copy, Knows, Scene, attacks};
use crate::support::root;

/// Whether the reader finds an export sound, beside a head that was kept elsewhere if there is one.
fn sound(folder: &Path, export: &str, head: Option<&str>) -> (bool, String) {
    let (file, known) = (folder.join("export.jsonl"), folder.join("head"));
    fs::write(&file, export).unwrap();
    let mut reader = Command::new("python3");
    reader.arg(root().join("tests/data/verify.py")).arg(file);
    if let Some(head) = head {
        fs::write(&known, head).unwrap();
        reader.arg(known);
    }
    let said = reader
        .output()
        .expect("these tests need `python3` on the PATH: it reads the record independently");
    let told = [said.stdout, said.stderr].concat();
    (said.status.success(), String::from_utf8(told).unwrap())
}

#[tokio::test]
async fn an_independent_reader_comes_to_the_same_verdicts() {
    let scene = Scene::new().await;
    let folder = tempfile::tempdir().unwrap();
    let head = scene.copy().seals.values().next_back().unwrap().clone();
    for (name, ways) in attacks(&scene).await {
        for copy in ways {
            let export = copy.export();
            let ours = jsonl::verify(export.as_bytes(), scene.trust(Knows::Nothing)).is_sound();
            let (theirs, told) = sound(folder.path(), &export, None);
            assert_eq!(theirs, ours, "{name}: {told}");
            let ours = jsonl::verify(export.as_bytes(), scene.trust(Knows::Head)).is_sound();
            let (theirs, told) = sound(folder.path(), &export, Some(&head));
            assert_eq!(theirs, ours, "{name} beside a head: {told}");
        }
    }
    let honest: Copy = scene.copy();
    let (_, told) = sound(folder.path(), &honest.export(), Some(&head));
    let (lines, size) = (
        honest.records.len(),
        honest.seals.keys().next_back().unwrap(),
    );
    // The head that was signed last is that of the whole log: the same name, size and root.
    let signed: Vec<_> = head.lines().take(3).collect();
    assert_eq!(told, format!("ok {lines}\n{}\n", signed.join("\n")));
    assert_eq!(signed[1], size.to_string());
}
