use super::*;

fn notifications(text: &str) -> String {
    format!("steward:\n  id: acme\n  notifications: {text}\n")
}

// covers B16
#[test]
fn undeliverable_notifications_are_errors_at_load_time() {
    let webhook = "channels: { webhook: 'https://acme.com/' }";
    for (text, code, path) in [
        (
            "{ triggers: [policy_override] }".to_owned(),
            Code::MissingKey,
            "steward.notifications.triggers",
        ),
        (
            "{ channels: {}, triggers: [policy_override] }".to_owned(),
            Code::MissingKey,
            "steward.notifications.channels",
        ),
        (
            "{ channels: { webhook: 'http://acme.com/' }, triggers: [policy_override] }".to_owned(),
            Code::BadAddress,
            "steward.notifications.channels.webhook",
        ),
        (
            "{ channels: { webhook: 'https://ann:s3cret@acme.com/' }, triggers: [policy_override] }"
                .to_owned(),
            Code::BadAddress,
            "steward.notifications.channels.webhook",
        ),
        (
            "{ channels: { email: 'a@acme.com' }, triggers: [] }".to_owned(),
            Code::UnknownKey,
            "steward.notifications.channels.email",
        ),
        (
            format!("{{ {webhook}, triggers: [policy_overide] }}"),
            Code::UnknownValue,
            "steward.notifications.triggers[0]",
        ),
        (
            format!("{{ {webhook}, trigger: [policy_override] }}"),
            Code::UnknownKey,
            "steward.notifications.trigger",
        ),
    ] {
        let error = load_str("test.yaml", &manifest(&notifications(&text))).unwrap_err();
        let first = &error.diagnostics()[0];
        assert_eq!((first.code, first.path.as_str()), (code, path), "{text}");
        assert!(first.help.is_some() && first.span.is_some(), "{text}");
    }
}

// covers B16
#[test]
fn notifications_without_triggers_are_only_a_warning() {
    for (text, path) in [
        ("{}", "steward.notifications.triggers"),
        (
            "{ channels: { webhook: 'https://acme.com/' } }",
            "steward.notifications.channels",
        ),
        (
            "{ channels: { webhook: 'https://acme.com/' }, triggers: [] }",
            "steward.notifications.triggers",
        ),
    ] {
        let loaded = load(&notifications(text));
        assert_eq!(codes(&loaded.warnings), [Code::NoEffect], "{text}");
        assert_eq!(loaded.warnings[0].path, path, "{text}");
        let notifications = loaded.atlas.steward.unwrap().notifications.unwrap();
        assert_eq!(
            notifications.address_for(NoticeTrigger::PolicyOverride),
            None
        );
    }
    let local = "{ channels: { webhook: 'http://127.0.0.1:9/x' }, triggers: [high_risk_action] }";
    let loaded = load(&notifications(local));
    assert_eq!(loaded.warnings, []);
    let notifications = loaded.atlas.steward.unwrap().notifications.unwrap();
    let to = notifications.address_for(NoticeTrigger::HighRiskAction);
    assert_eq!(to, Some("http://127.0.0.1:9/x"));
    assert_eq!(
        notifications.address_for(NoticeTrigger::PolicyOverride),
        None
    );
}
