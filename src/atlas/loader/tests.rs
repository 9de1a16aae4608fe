use std::path::{Path, PathBuf};

use super::*;
use crate::atlas::document::{
    AccessKind, AccessRate, AccessRules, CheckpointMode, GuidanceFormat, InjectMode, NoticeTrigger,
    PolicyKind, Respondent, ResponseType, RiskTier,
};
use crate::atlas::model::Trigger;
use crate::base::text::is_deceptive;

mod acme;
mod config;
mod fragments;
mod grammar;
mod hostile_input;
mod invalid_manifests;
mod notifications;
mod rules;
mod schema;
mod trace;

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// A complete manifest, followed by `rest`.
fn manifest(rest: &str) -> String {
    format!("atlas_version: '1.0'\natlas_id: com.example\nversion: '1'\nname: Example\n{rest}")
}

fn load(rest: &str) -> LoadOutcome {
    load_str("test.yaml", &manifest(rest)).unwrap_or_else(|error| panic!("{error}"))
}

fn codes(diagnostics: &[Diagnostic]) -> Vec<Code> {
    diagnostics
        .iter()
        .map(|diagnostic| diagnostic.code)
        .collect()
}
