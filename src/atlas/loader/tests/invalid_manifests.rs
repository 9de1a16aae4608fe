use super::*;

/// One file per kind of problem. A new file is a new case: its report must be reviewed once.
#[test]
fn every_invalid_manifest_is_reported_with_positions() {
    let folder = repository("tests/data/atlas/invalid");
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert!(names.len() > 40, "the cases are gone: {names:?}");
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_snapshot_path(repository("src/atlas/snapshots"));
    settings.set_omit_expression(true);
    for name in names {
        let bytes = std::fs::read(folder.join(&name)).unwrap();
        let error = load_bytes(&name, bytes).expect_err(&name);
        let report = error.report(ReportColour::None);
        let case = name.trim_end_matches(".yaml");
        settings.bind(|| insta::assert_snapshot!(case, report));
    }
}

#[test]
fn the_summary_names_the_first_error_and_counts_the_rest() {
    let error = load_str("a.yaml", "atlas_version: '1.0'\nname: [x]\nx-foo: 1\n").unwrap_err();
    assert_eq!(
        error.to_string(),
        "a.yaml:1:1: error[E010]: missing key `atlas_id` (and 2 more)"
    );
    assert_eq!(
        codes(error.diagnostics()),
        [
            Code::MissingKey,
            Code::MissingKey,
            Code::WrongType,
            Code::IgnoredKey
        ]
    );
}

#[test]
fn unreadable_file_is_named() {
    let error = load_file("/nowhere/atlas\u{1b}.yaml").unwrap_err();
    assert!(matches!(&error, LoadError::Io { .. }), "{error:?}");
    let report = error.report(ReportColour::None);
    assert!(report.starts_with("error: cannot read `/nowhere/atlas\\u{1b}.yaml`: "));
}

#[test]
fn bytes_that_are_not_utf8_are_rejected() {
    let error = load_bytes("a.yaml", b"name: \xff".to_vec()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`a.yaml` is not UTF-8 text: the first invalid byte is at offset 6"
    );
}

#[test]
fn oversized_file_is_rejected_without_parsing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.yaml");
    let file = File::create(&path).unwrap();
    file.set_len(1 << 40).unwrap();
    let error = load_file(&path).unwrap_err();
    assert!(matches!(error, LoadError::TooLarge { .. }), "{error:?}");
}

#[test]
fn errors_that_follow_from_other_errors_are_not_reported() {
    let text = manifest(
        "context_blocks:\n  - content: no id\ncheckpoints:\n  - checkpoint_id: a\n    \
         trigger: { type: typo }\n    inject_contexts: [intro]\n",
    );
    let error = load_str("a.yaml", &text).unwrap_err();
    let paths: Vec<_> = error
        .diagnostics()
        .iter()
        .map(|diagnostic| diagnostic.path.as_str())
        .collect();
    assert_eq!(
        paths,
        [
            "context_blocks[0].context_id",
            "checkpoints[0].trigger.type"
        ]
    );
}
