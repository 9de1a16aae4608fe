//! `cra reconstruct`: runs the protocol on a snapshot file.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::Path;

use serde_json::json;

use super::args::{ReconstructArgs, ReconstructPhase};
use super::error::{Failure, verdict};
use super::exit;
use super::input::read;
use crate::base::limits::MAX_SNAPSHOT_BYTES;
use crate::base::text::{LineFeeds, sanitize};
use crate::reconstruct::{
    Artifact, COMPATIBLE_WITH, Checklist, ConversationSnapshot, GLOSSARY, Inference,
    LOAD_ARTIFACTS_FOR, NEVER_LOAD_ARTIFACTS_FOR, PROTOCOL_VERSION, QUALITY, Reconstruction,
    RetrievalStep, UPDATED,
};
use crate::runtime::snapshot_file::{artifact_content, parse_snapshot};

/// Runs the protocol on a file.
pub(super) fn reconstruct(args: &ReconstructArgs) -> Result<u8, Failure> {
    let Some(file) = &args.file else {
        return print(exit::OK, &glossary());
    };
    let text = read(file, MAX_SNAPSHOT_BYTES)?;
    let snapshot = parse_snapshot(file, &text)?;
    if let Some(wanted) = &args.artifact {
        return artifact(file, &snapshot, wanted, args);
    }
    let whole = Reconstruction::from_snapshot(&snapshot);
    let code = match args.phase {
        ReconstructPhase::Validate if !whole.checklist.is_clear() => exit::EXPECTATION,
        ReconstructPhase::Retrieve
        | ReconstructPhase::Infer
        | ReconstructPhase::Validate
        | ReconstructPhase::Engage => exit::OK,
    };
    if args.json {
        return print(code, &pretty(&whole));
    }
    let text = match args.phase {
        ReconstructPhase::Retrieve => retrieved(&whole.retrieved, &whole.artifacts),
        ReconstructPhase::Infer => inferred(&whole.inferred),
        ReconstructPhase::Validate => validated(&whole.checklist),
        ReconstructPhase::Engage => whole.confirmation,
    };
    print(code, &text)
}

fn print(code: u8, text: &str) -> Result<u8, Failure> {
    verdict(code, io::stdout().lock().write_all(text.as_bytes()))
}

fn pretty(value: &impl serde::Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    text
}

fn retrieved(steps: &[RetrievalStep], artifacts: &[Artifact]) -> String {
    let mut text = String::new();
    for step in steps {
        let (number, name, purpose) = (step.number, step.name, step.purpose);
        let _ = writeln!(text, "{number}. {name}: {purpose}");
        for read in &step.reads {
            let value = read.value.as_deref().unwrap_or("(missing)");
            let _ = writeln!(text, "   {:<46} {value}", read.path);
        }
    }
    for artifact in artifacts {
        let _ = writeln!(text, "   {}", artifact.mention());
    }
    text
}

fn inferred(inferred: &[Inference]) -> String {
    let mut text = String::new();
    for one in inferred {
        let (number, name) = (one.number, one.name);
        let _ = writeln!(text, "{number}. {name} (from {})", one.inputs.join(", "));
        let _ = writeln!(text, "   {}", one.output);
    }
    text
}

fn validated(checklist: &Checklist) -> String {
    let mut text = String::new();
    for check in &checklist.checks {
        let mark = if check.is_clear() { 'x' } else { ' ' };
        let _ = writeln!(text, "[{mark}] {}: {}", check.name, check.question);
        for missing in &check.missing {
            let _ = writeln!(text, "      missing: {missing}");
        }
        if let Some(ask) = check.ask {
            let _ = writeln!(text, "      ask: {ask}");
        }
    }
    let doubts = checklist.format.iter().cloned();
    let faults = checklist.faults.iter();
    let faults = faults.map(|fault| format!("{} {}", fault.place, fault.what));
    for doubt in doubts.chain(faults) {
        let _ = writeln!(text, "  ! {doubt}");
    }
    text
}

fn artifact(
    file: &Path,
    snapshot: &ConversationSnapshot,
    wanted: &str,
    args: &ReconstructArgs,
) -> Result<u8, Failure> {
    let found = snapshot
        .artifacts
        .iter()
        .find(|artifact| artifact.id == wanted);
    let artifact = found.ok_or_else(|| {
        let known = snapshot
            .artifacts
            .iter()
            .map(|artifact| artifact.id.clone())
            .collect();
        Failure::NoArtifact(wanted.to_owned(), known)
    })?;
    let content = artifact_content(file, artifact)?;
    if args.json {
        let whole = json!({ "artifact": artifact, "content": content });
        return print(exit::OK, &pretty(&whole));
    }
    let mut text = String::new();
    let title = artifact.title.as_deref().unwrap_or("no title");
    let _ = writeln!(text, "{}: {title}", artifact.id);
    let list = |texts: &[String]| (!texts.is_empty()).then(|| texts.join("; "));
    let about = [
        ("type", artifact.kind.clone()),
        ("status", artifact.status.clone()),
        ("sections", list(&artifact.key_sections)),
        ("load for", list(&artifact.retrieve_for)),
    ];
    for (name, value) in about {
        if let Some(value) = value {
            let _ = writeln!(text, "{name}: {value}");
        }
    }
    match content {
        Some(content) => {
            let content = sanitize(&content, LineFeeds::Keep).text;
            let _ = writeln!(text, "\n{}", content.trim_end());
        }
        None => {
            let _ = writeln!(
                text,
                "\nThe file contains neither the artifact nor a path to it."
            );
        }
    }
    print(exit::OK, &text)
}

fn glossary() -> String {
    let mut text = format!(
        "Reconstruction protocol {PROTOCOL_VERSION} of {UPDATED}, for snapshot files of format {COMPATIBLE_WITH}.\n\n"
    );
    for (term, meaning) in GLOSSARY {
        let _ = writeln!(text, "{term:<29} {meaning}");
    }
    let _ = writeln!(text, "\nLoad an artifact when");
    for case in LOAD_ARTIFACTS_FOR {
        let _ = writeln!(text, "  + {case}");
    }
    let _ = writeln!(text, "but not");
    for case in NEVER_LOAD_ARTIFACTS_FOR {
        let _ = writeln!(text, "  - {case}");
    }
    for (who, standards) in QUALITY {
        let _ = writeln!(text, "\nAfter a good reconstruction the {who}");
        for standard in standards {
            let _ = writeln!(text, "  - {standard}");
        }
    }
    text
}
