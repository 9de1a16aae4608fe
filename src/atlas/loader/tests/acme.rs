//! Tests of the example in the format specification, which ships unchanged.

use std::collections::BTreeSet;

use super::*;
use crate::atlas::model::Checkpoint;

fn acme() -> LoadOutcome {
    load_file(repository("assets/atlas/acme-support.yaml"))
        .unwrap_or_else(|error| panic!("{error}"))
}

fn gate<'a>(loaded: &'a LoadOutcome, id: &str) -> &'a Checkpoint {
    let gates = &loaded.atlas.checkpoints;
    gates.iter().find(|gate| gate.id == id).unwrap()
}

fn set(ids: &[&str]) -> BTreeSet<String> {
    ids.iter().map(|&id| id.to_owned()).collect()
}

fn patterns(patterns: &crate::base::pattern::Patterns) -> Vec<&str> {
    patterns
        .iter()
        .map(crate::base::pattern::Pattern::as_str)
        .collect()
}

// covers B17
#[test]
fn acme_example_loads_with_warnings_only() {
    let loaded = acme();
    let warnings: Vec<_> = loaded
        .warnings
        .iter()
        .map(|warning| {
            (
                warning.code,
                warning.path.as_str(),
                warning.span.unwrap().line,
            )
        })
        .collect();
    assert_eq!(
        warnings,
        [
            (Code::UndeclaredAction, "capabilities[0].actions[1]", 28),
            (Code::UndeclaredAction, "capabilities[0].actions[2]", 28),
            (Code::UndeclaredAction, "capabilities[1].actions[0]", 32),
            (Code::UndeclaredAction, "capabilities[1].actions[1]", 32),
            (Code::UndeclaredAction, "capabilities[1].actions[2]", 32),
            (Code::ImplicitDefault, "actions", 120),
        ]
    );
    let bytes = std::fs::read(repository("assets/atlas/acme-support.yaml")).unwrap();
    assert_eq!(loaded.atlas.hash, Digest::of(&bytes));
    assert_eq!(loaded.source.as_bytes(), bytes);
}

// covers B16
#[test]
fn every_manifest_field_of_the_acme_example_is_read() {
    let atlas = acme().atlas;
    assert_eq!(atlas.id, "com.acme.support");
    assert_eq!(atlas.version, "2.1.0");
    assert_eq!(atlas.name, "ACME Support Atlas");
    assert_eq!(
        atlas.description,
        "Customer support capabilities with governance"
    );

    assert_eq!(atlas.policies.len(), 1);
    let policy = &atlas.policies[0];
    assert_eq!(policy.id, "require-admin-approval");
    assert_eq!(policy.kind, PolicyKind::RequiresApproval);
    assert_eq!(patterns(&policy.actions), ["user.ban", "ticket.delete"]);
    assert_eq!(policy.reason, "Admin actions require approval");

    assert_eq!(atlas.actions.len(), 1);
    let action = &atlas.actions["ticket.get"];
    assert_eq!(action.name, "Get Ticket");
    assert_eq!(action.risk_tier, Some(RiskTier::Low));
    assert_eq!(
        action.parameter_error(&serde_json::json!({"ticket_id": "T-1"})),
        None
    );
    for wrong in [serde_json::json!({}), serde_json::json!({"ticket_id": 1})] {
        assert!(action.parameter_error(&wrong).is_some(), "{wrong}");
    }
}

// covers B16
#[test]
fn every_steward_field_of_the_acme_example_is_read() {
    let steward = acme().atlas.steward.unwrap();
    assert_eq!(steward.id, "acme-corp");
    assert_eq!(steward.name, "ACME Corporation");
    assert_eq!(steward.contact, "atlas@acme.com");
    assert_eq!(
        steward.access.unwrap(),
        AccessRules {
            kind: AccessKind::Authenticated,
            api_keys: vec!["sk-acme-*".to_owned()],
            rate_limit: Some(AccessRate {
                requests_per_minute: 100
            }),
        }
    );
    assert_eq!(steward.delivery.unwrap().mode, "embedded");
    let notifications = steward.notifications.unwrap();
    assert_eq!(
        notifications.channels.webhook.as_deref(),
        Some("https://acme.example/cra-events")
    );
    assert_eq!(
        notifications.triggers,
        [NoticeTrigger::PolicyOverride, NoticeTrigger::HighRiskAction]
    );
}

// covers B16
#[test]
fn acme_capabilities_and_contexts_are_as_written() {
    let atlas = acme().atlas;
    let capabilities: Vec<_> = atlas
        .capabilities
        .iter()
        .map(|c| {
            (
                c.id.as_str(),
                c.name.as_str(),
                patterns(&c.actions),
                c.starts_locked,
            )
        })
        .collect();
    assert_eq!(
        capabilities,
        [
            (
                "basic-support",
                "Basic Support",
                vec!["ticket.get", "ticket.list", "ticket.comment"],
                true
            ),
            (
                "admin-support",
                "Admin Support",
                vec!["ticket.delete", "ticket.reassign", "user.ban"],
                true
            ),
        ]
    );

    let contexts: Vec<_> = atlas
        .contexts
        .values()
        .map(|c| {
            (
                c.context_id.as_str(),
                c.name.as_str(),
                c.content.as_str(),
                c.inject_mode,
            )
        })
        .collect();
    assert_eq!(
        contexts,
        [
            (
                "intro-context",
                "Introduction",
                "You are a support agent for ACME Corporation...",
                InjectMode::OnDemand
            ),
            (
                "policy-summary",
                "Policy Summary",
                "Key policies: No refunds after 30 days...",
                InjectMode::OnDemand
            ),
        ]
    );
}

// covers B18
#[test]
fn four_acme_gates_are_as_written() {
    let loaded = acme();
    let order: Vec<_> = loaded
        .atlas
        .checkpoints
        .iter()
        .map(|gate| {
            (
                gate.id.as_str(),
                gate.kind,
                gate.priority,
                gate.force_sync_trace,
            )
        })
        .collect();
    assert_eq!(
        order,
        [
            ("onboarding", "session_start", 1000, false),
            ("admin-gate", "capability_gate", 920, false),
            // Both have priority 900: the order written decides.
            ("delete-confirm", "action_pre", 900, true),
            ("high-risk-gate", "risk_threshold", 900, false),
        ]
    );
    for gate in &loaded.atlas.checkpoints {
        assert_eq!(gate.mode, CheckpointMode::Blocking);
        assert_eq!(gate.respondent, Respondent::Operator);
        assert_eq!(gate.timeout_seconds, 300);
        assert_eq!(gate.questions.len(), 1);
        assert!(gate.questions[0].required());
    }
    let questions: Vec<_> = loaded
        .atlas
        .checkpoints
        .iter()
        .map(|gate| &gate.questions[0])
        .map(|question| (question.id(), question.text(), question.response_type()))
        .collect();
    assert_eq!(
        questions,
        [
            (
                "agree-terms",
                "Do you agree to ACME's terms of service?",
                ResponseType::Boolean
            ),
            (
                "admin-ack",
                "I am authorized to perform administrative actions",
                ResponseType::Acknowledgment
            ),
            (
                "confirm-delete",
                "I understand this deletion cannot be undone",
                ResponseType::Acknowledgment
            ),
            (
                "justify-risk",
                "Provide justification for this high-risk action",
                ResponseType::Text
            ),
        ]
    );
}

// covers B18
#[test]
fn acme_gates_fire_and_act_as_written() {
    let loaded = acme();
    let onboarding = gate(&loaded, "onboarding");
    assert_eq!(onboarding.trigger, Trigger::SessionStart);
    assert_eq!(
        onboarding.inject_contexts,
        ["intro-context", "policy-summary"]
    );
    assert_eq!(onboarding.unlock_capabilities, set(&["basic-support"]));
    let guidance = onboarding.guidance.as_ref().unwrap();
    assert_eq!(guidance.format, GuidanceFormat::Markdown);
    assert_eq!(
        guidance.content,
        "Welcome to ACME Support!\nPlease handle all customer data responsibly.\n"
    );

    let delete = gate(&loaded, "delete-confirm");
    assert_eq!(
        delete.trigger,
        Trigger::ActionPre(["*.delete"].into_iter().collect())
    );

    let risk = gate(&loaded, "high-risk-gate");
    assert_eq!(risk.trigger, Trigger::RiskThreshold(RiskTier::High));
    assert_eq!(risk.questions[0].validation().min_length, Some(20));
    let guidance = risk.guidance.as_ref().unwrap();
    assert_eq!(guidance.format, GuidanceFormat::SystemInstruction);
    assert_eq!(
        guidance.content,
        "Proceed with caution. All actions are being audited."
    );

    let admin = gate(&loaded, "admin-gate");
    assert_eq!(
        admin.trigger,
        Trigger::CapabilityAccess(set(&["admin-support"]))
    );
    assert_eq!(admin.unlock_capabilities, set(&["admin-support"]));
}

// covers B17
#[test]
fn acme_example_as_json_gives_the_same_atlas() {
    let yaml = acme();
    let mut problems = Problems::new("", &yaml.source);
    let json = yaml::parse(&yaml.source, &mut problems).unwrap().to_json();
    for text in [
        json.to_string(),
        serde_json::to_string_pretty(&json)
            .unwrap()
            .replace("  ", "\t"),
    ] {
        let mut loaded = load_str("acme.json", &text).unwrap_or_else(|error| panic!("{error}"));
        assert_ne!(loaded.atlas.hash, yaml.atlas.hash);
        loaded.atlas.hash = yaml.atlas.hash;
        loaded.atlas.text = yaml.atlas.text.clone();
        loaded.atlas.origin = yaml.atlas.origin.clone();
        assert_eq!(format!("{:?}", loaded.atlas), format!("{:?}", yaml.atlas));
    }
}
