//! Tests with hostile input.

use proptest::prelude::*;

use super::*;
use crate::base::limits::{MAX_ATLAS_DEPTH, MAX_ATLAS_NODES, MAX_DIAGNOSTICS};

/// Loads the bytes, and checks every resulting diagnostic against its guarantees.
fn survive(bytes: Vec<u8>) {
    let text = String::from_utf8(bytes.clone()).ok();
    let (diagnostics, report) = match load_bytes("a\u{202e}.yaml", bytes) {
        Ok(loaded) => {
            let report = render(&loaded.warnings, &loaded.source, ReportColour::None);
            (loaded.warnings, report)
        }
        Err(error) => {
            assert!(!error.to_string().chars().any(is_deceptive), "{error}");
            (
                error.diagnostics().to_vec(),
                error.report(ReportColour::None),
            )
        }
    };
    let shown = report.chars().filter(|&c| c != '\n');
    assert!(!shown.clone().any(is_deceptive), "{report:?}");
    for diagnostic in &diagnostics {
        assert!(!diagnostic.message.ends_with('.'), "{diagnostic}");
        if let (Some(place), Some(text)) = (diagnostic.span, &text) {
            assert!(text.get(place.start..place.end).is_some(), "{diagnostic}");
            let line = text.split('\n').nth(place.line - 1).unwrap();
            assert!(place.column <= line.chars().count() + 1, "{diagnostic}");
        }
    }
}

proptest! {
    #[test]
    fn loader_survives_arbitrary_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        survive(bytes);
    }

    #[test]
    fn loader_survives_arbitrary_yaml_like_text(text in "[-a:?!&*<>{}\\[\\],#|'\"%@ \t\r\n0.~\u{feff}\u{202e}é]{0,60}") {
        survive(text.into_bytes());
    }

    #[test]
    fn loader_survives_a_mutated_manifest(
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0..12_usize, ".{0,4}"), 1..6),
    ) {
        let mut text: Vec<char> =
            include_str!("../../../../assets/atlas/acme-support.yaml").chars().collect();
        for (at, removed, inserted) in edits {
            let at = at.index(text.len());
            let end = (at + removed).min(text.len());
            text.splice(at..end, inserted.chars());
        }
        survive(text.into_iter().collect::<String>().into_bytes());
    }
}

#[test]
fn loader_survives_mutated_invalid_manifests() {
    let folder = repository("tests/data/atlas/invalid");
    for entry in std::fs::read_dir(folder).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        // Every possible truncation of the file.
        for length in (0..bytes.len()).step_by(7) {
            survive(bytes[..length].to_vec());
        }
    }
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_text() {
    let text = format!("\u{feff}{}", manifest("x-colour: red\n"));
    let loaded = load_str("a.yaml", &text).unwrap();
    assert_eq!(codes(&loaded.warnings), [Code::IgnoredKey]);
    assert_eq!(loaded.atlas.hash, Digest::of(&text));

    let error = load_str("a.yaml", "\u{feff}nmae: x\n").unwrap_err();
    let place = error.diagnostics()[0].span.unwrap();
    assert_eq!((place.start, place.line, place.column), (3, 1, 1));
    let report = error.report(ReportColour::None);
    assert!(report.contains("1 | nmae: x\n  | ^^^^\n"), "{report}");
}

#[test]
fn nesting_depth_is_limited_in_block_and_flow_style() {
    let levels = MAX_ATLAS_DEPTH + 1;
    let flow = "[".repeat(levels);
    let block = "- ".repeat(levels);
    let deep_maps = (0..levels)
        .map(|level| " ".repeat(level) + "a:\n")
        .collect();
    // Each style alone is within the limit.
    let (blocks, flows) = (levels / 2, levels - levels / 2);
    let mixed = format!(
        "{}{}{}",
        "- ".repeat(blocks),
        "[".repeat(flows),
        "]".repeat(flows)
    );
    for text in [flow, block, deep_maps, mixed, "[".repeat(100_000)] {
        let error = load_str("deep.yaml", &text).unwrap_err();
        assert_eq!(codes(error.diagnostics()), [Code::Limit], "{error}");
    }
}

#[test]
fn deepest_allowed_tree_is_read() {
    // The manifest, the list, the action and the schema are four levels.
    let levels = MAX_ATLAS_DEPTH - 4;
    let constant = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let loaded = load(&format!(
        "actions:\n  - action_id: a\n    parameters_schema:\n      const: {constant}\n"
    ));
    assert!(loaded.atlas.actions["a"].parameters.is_some());
}

#[test]
fn number_of_values_is_limited() {
    let text = format!("[{}]", "a,".repeat(MAX_ATLAS_NODES));
    let error = load_str("wide.yaml", &text).unwrap_err();
    assert_eq!(codes(error.diagnostics()), [Code::Limit]);
}

#[test]
fn many_errors_on_one_line_are_cut_short() {
    let duplicates = format!("{{{}}}", "a: 1, ".repeat(100_000));
    let error = load_str("flood.yaml", &duplicates).unwrap_err();
    assert_eq!(error.diagnostics().len(), MAX_DIAGNOSTICS);

    let strangers: Vec<String> = (0..50_000).map(|n| format!("x-k{n}: 1")).collect();
    let strangers = strangers.join(", ");
    let text = format!("{{name: x, {strangers}}}");
    let error = load_str("flood.yaml", &text).unwrap_err();
    let last = error.diagnostics().last().unwrap();
    assert_eq!(last.code, Code::MoreWarnings);
}

#[test]
fn many_unknown_references_are_counted() {
    let references = "x, ".repeat(MAX_DIAGNOSTICS + 5);
    let text = manifest(&format!(
        "checkpoints:\n  - checkpoint_id: a\n    trigger: {{ type: session_start }}\n    \
         inject_contexts: [{references}]\n"
    ));
    let error = load_str("flood.yaml", &text).unwrap_err();
    let last = error.diagnostics().last().unwrap();
    assert_eq!(last.message, "and 5 more errors");
    assert!(
        error.to_string().ends_with("(and at least 100 more)"),
        "{error}"
    );
}

#[test]
fn coloured_report_contains_only_sanitized_text() {
    let error = load_str("a.yaml", "nmae: \"\u{202e}\u{1b}[2J\"\n").unwrap_err();
    let report = error.report(ReportColour::Ansi);
    assert!(report.contains("\u{1b}["), "no colour: {report:?}");
    assert!(
        !report.contains('\u{202e}') && !report.contains("\u{1b}[2J"),
        "{report:?}"
    );
}

#[test]
fn too_many_config_patterns_are_rejected() {
    let keys: Vec<_> = (0..501).map(|n| format!("'a{n}*': {{}}")).collect();
    let config = "checkpoint_config: { action_pre: { mappings: {";
    let text = manifest(&format!("{config} {} }} }} }}\n", keys.join(", ")));
    let error = load_str("a.yaml", &text).unwrap_err();
    assert_eq!(codes(error.diagnostics()), [Code::OutOfRange]);
    let most = text.replace("'a500*': {}", "");
    assert_eq!(
        load_str("a.yaml", &most).unwrap().atlas.checkpoints.len(),
        500
    );
}
