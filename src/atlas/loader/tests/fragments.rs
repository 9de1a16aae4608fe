//! Tests of Atlas fragments from the documentation: each loads when put in the right place.

use std::fmt::Write as _;

use super::*;
use crate::atlas::keyword::Keywords;
use crate::atlas::model::Checkpoint;

/// The manifest around a fragment; it declares the parts that fragments refer to.
fn surroundings() -> String {
    let path = repository("tests/data/atlas/fragments/surroundings.yaml");
    std::fs::read_to_string(path).unwrap()
}

/// Inserts a YAML fragment into a manifest as text.
fn around_yaml(fragment: &str) -> String {
    if fragment.starts_with("checkpoints:") {
        return format!("{}{fragment}", surroundings());
    }
    let indented: Vec<_> = fragment.lines().map(|line| format!("    {line}")).collect();
    let indented = indented.join("\n");
    let trigger = if fragment.starts_with("trigger:") {
        ""
    } else {
        "    mode: blocking\n    trigger: { type: session_start }\n"
    };
    format!(
        "{}checkpoints:\n  - checkpoint_id: fragment\n{trigger}{indented}",
        surroundings()
    )
}

/// Inserts a JSON fragment into a manifest that is JSON throughout.
fn around_json(fragment: &str) -> String {
    let head =
        r#""atlas_version":"1.0","atlas_id":"com.example.fragments","version":"1","name":"F""#;
    if fragment.contains("\"context_id\"") {
        return format!("{{{head},\"context_blocks\":[{fragment}]}}");
    }
    let source = surroundings();
    let mut problems = Problems::new("surroundings", &source);
    let around = yaml::parse(&source, &mut problems).unwrap().to_json();
    let around = around.to_string();
    let fields = around.strip_suffix('}').unwrap();
    let inner = fragment.trim().strip_prefix('{').unwrap();
    format!("{fields},{inner}")
}

fn described(loaded: &LoadOutcome) -> String {
    let mut text = String::new();
    let atlas = &loaded.atlas;
    for checkpoint in &atlas.checkpoints {
        describe(&mut text, checkpoint);
    }
    for injection in &atlas.injections {
        if injection.mode != InjectMode::OnDemand {
            let keywords = injection.keywords.as_ref().map(words);
            let actions = listed(injection.actions.iter());
            let (id, priority) = (&injection.context_id, injection.priority);
            writeln!(text, "context {id} {priority}: {keywords:?} {actions}").unwrap();
        }
    }
    if let Some(budget) = &atlas.budget {
        writeln!(text, "{budget:?}").unwrap();
    }
    if loaded.source.contains("cache_config") {
        writeln!(text, "{:?}", atlas.cache).unwrap();
    }
    for warning in &loaded.warnings {
        // Warnings about undeclared parts of the surrounding manifest are irrelevant.
        if warning.code != Code::UndeclaredAction {
            let help = warning.help.as_deref().unwrap_or("-");
            writeln!(text, "{}: {} ({help})", warning.code, warning.message).unwrap();
        }
    }
    text
}

fn describe(text: &mut String, checkpoint: &Checkpoint) {
    let (id, kind) = (&checkpoint.id, checkpoint.kind);
    let (mode, priority) = (checkpoint.mode.as_str(), checkpoint.priority);
    writeln!(text, "{id}: {kind}, {mode}, {priority}").unwrap();
    let trigger = match &checkpoint.trigger {
        Trigger::Keyword(keywords) => words(keywords),
        Trigger::ActionPre(patterns) => format!("before {}", listed(patterns.iter())),
        Trigger::ActionPost(patterns) => format!("after {}", listed(patterns.iter())),
        other => format!("{other:?}"),
    };
    writeln!(text, "  trigger {trigger}").unwrap();
    let mut line = |name: &str, items: String| {
        if items != "[]" {
            writeln!(text, "  {name} {items}").unwrap();
        }
    };
    line("unless", listed(checkpoint.unless.iter()));
    line("inject", listed(&checkpoint.inject_contexts));
    line("unlock", listed(&checkpoint.unlock_capabilities));
    line("lock", listed(&checkpoint.lock_capabilities));
    line("allow", listed(checkpoint.allow_actions.iter()));
    line("deny", listed(checkpoint.deny_actions.iter()));
    for question in &checkpoint.questions {
        let rules = question.validation();
        line("question", format!("{} {rules:?}", question.id()));
    }
    if let Some(guidance) = &checkpoint.guidance {
        line("guidance", format!("{guidance:?}"));
    }
    if checkpoint.force_sync_trace {
        line("records", "are durable at once".to_owned());
    }
}

fn words(keywords: &Keywords) -> String {
    format!("{:?} of {}", keywords.mode(), listed(keywords.texts()))
}

fn listed(items: impl IntoIterator<Item = impl ToString>) -> String {
    let items: Vec<_> = items.into_iter().map(|item| item.to_string()).collect();
    format!("[{}]", items.join(", "))
}

// covers A4, A5, B7
#[test]
fn every_documented_fragment_loads_with_its_documented_meaning() {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_snapshot_path(repository("src/atlas/snapshots/fragments"));
    settings.set_omit_expression(true);
    let folder = repository("tests/data/atlas/fragments");
    let entries = std::fs::read_dir(&folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter(|name| name != "surroundings.yaml").collect();
    names.sort();
    assert!(names.len() >= 37, "fragments are gone: {names:?}");
    for name in names {
        let fragment = std::fs::read_to_string(folder.join(&name)).unwrap();
        let is_json = Path::new(&name)
            .extension()
            .is_some_and(|extension| extension == "json");
        let text = if is_json {
            around_json(&fragment)
        } else {
            around_yaml(&fragment)
        };
        let loaded = load_str(&name, &text)
            .unwrap_or_else(|error| panic!("{}\n{text}", error.report(ReportColour::None)));
        settings.bind(|| insta::assert_snapshot!(name, described(&loaded)));
    }
}
