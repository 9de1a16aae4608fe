//! Tests of the editor schema against Atlases that load.

use super::*;
use crate::atlas::document::AtlasManifest;
use serde_json::{Value, json};

fn as_json(text: &str) -> Value {
    let parsed = crate::atlas::yaml::parse(text, &mut Problems::new("test.yaml", text));
    parsed.unwrap().to_json()
}

fn schema() -> jsonschema::Validator {
    jsonschema::validator_for(&AtlasManifest::json_schema()).unwrap()
}

fn yaml_files(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(repository(folder)).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "yaml")
        })
        .collect()
}

#[test]
fn every_bundled_atlas_matches_the_schema() {
    let schema = schema();
    let mut files = yaml_files("assets/atlas");
    files.extend(yaml_files("assets/scenarios/atlas"));
    files.extend(yaml_files("assets/extensions/atlas"));
    assert!(files.len() > 5, "{files:?}");
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let errors: Vec<_> = schema
            .iter_errors(&as_json(&text))
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{}: {errors:#?}", file.display());
    }
}

#[test]
fn misspelt_keys_do_not_match_the_schema() {
    let schema = schema();
    let fits = |rest: &str| schema.is_valid(&as_json(&manifest(rest)));
    assert!(fits(""));
    assert!(fits(
        "policies: [{policy_id: p, type: deny, actions: ['*'], when: {not: {path: params.a, eq: 1}}}]"
    ));
    let approvers = |number: &str| {
        format!(
            "checkpoints: [{{checkpoint_id: c, approvers: {number}, trigger: {{type: session_start}}}}]"
        )
    };
    assert!(fits(&approvers("1")) && fits(&approvers("2")));
    assert!(!fits(&approvers("3")) && !fits(&approvers("'2'")));
    for rest in [
        "checkpoint: []",
        "default_decision: allowed",
        "checkpoints: [{checkpoint_id: c, trigger: {type: risk_treshold}}]",
        "policies: [{policy_id: p, type: deny, action: ['*']}]",
        "policies: [{policy_id: p, type: deny, actions: ['*'], when: {pth: params.a, eq: 1}}]",
        "policies: [{policy_id: p, type: deny, actions: ['*'], when: {all: [], any: []}}]",
    ] {
        assert!(!fits(rest), "{rest}");
    }
    assert_eq!(
        AtlasManifest::json_schema()["title"],
        json!("AtlasManifest")
    );
}
