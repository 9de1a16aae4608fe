//! Who is let in at a door, and how often they may ask there.

use std::time::Duration;

use super::*;

impl Bench {
    /// An agent begins a session at a door.
    fn visit(&mut self, session: &str, secret: &str, api_key: Option<&str>) -> AskId {
        let start = StartSession {
            session: session.parse().unwrap(),
            agent: "bot".to_owned(),
            agent_version: None,
            intent: None,
            owner: Some(Owner {
                secret: Digest::of(secret),
                api_key: api_key.map(str::to_owned),
            }),
        };
        self.ask(|ask| Command::StartSession(ask, start))
    }
}

fn under(rules: &str) -> Bench {
    let body = format!(
        "steward: {{id: s, access: {rules}}}\nactions: [{{action_id: a.b, name: x, risk_tier: low}}]"
    );
    Bench::new(&[&atlas(&body)])
}

// covers B16
#[test]
fn a_door_asks_for_a_key_where_an_atlas_wants_one() {
    let mut bench = under("{type: authenticated, api_keys: ['sk-acme-*', other]}");
    for (key, told) in [
        (None, "lets nobody in who shows no key"),
        (Some("sk-evil-1"), "does not know the key that was shown"),
        (Some(""), "does not know the key that was shown"),
    ] {
        let refused = bench.visit("s-1", "x", key);
        let denied = bench.denied(refused);
        assert_eq!(denied.code, DenyCode::Unauthorized);
        assert!(denied.reason.contains(told), "{}", denied.reason);
        assert!(!denied.reason.contains("sk-evil"), "{}", denied.reason);
    }
    assert!(bench.engine.sessions().is_empty());
    for (session, key) in [("s-1", "sk-acme-7"), ("s-2", "other")] {
        let let_in = bench.visit(session, "x", Some(key));
        assert!(matches!(bench.reply(let_in), Reply::Started(_)));
    }
    // Who comes back shows it again.
    let back = bench.visit("s-1", "x", None);
    assert_eq!(bench.denied(back).code, DenyCode::Unauthorized);
    let kept = serde_json::to_string(&bench.engine.sessions()).unwrap();
    assert!(!kept.contains("sk-acme"), "{kept}");
}

#[test]
fn a_public_atlas_asks_for_no_key_and_nobody_in_process_is_asked() {
    let mut bench = under("{type: public}");
    let let_in = bench.visit("s-1", "x", None);
    assert!(matches!(bench.reply(let_in), Reply::Started(_)));
    let mut bench = under("{type: authenticated, api_keys: []}");
    let shut = bench.visit("s-1", "x", Some("sk-1"));
    assert_eq!(bench.denied(shut).code, DenyCode::Unauthorized);
    let inside = bench.start("s-1");
    assert!(matches!(bench.reply(inside), Reply::Started(_)));
}

// covers B16
#[test]
fn one_asker_asks_no_more_than_the_atlas_says_in_any_minute() {
    let rules = "{type: authenticated, api_keys: ['sk-*'], rate_limit: {requests_per_minute: 3}}";
    let mut bench = under(rules);
    bench.visit("s-1", "x", Some("sk-1"));
    // Another session with the same key counts together with it; coming back does not count.
    bench.visit("s-2", "y", Some("sk-1"));
    bench.visit("s-1", "x", Some("sk-1"));
    let third = bench.request("s-1", "a.b", json!({}));
    assert!(matches!(bench.reply(third), Reply::Allowed(_)));
    for fourth in [bench.request("s-2", "a.b", json!({})), bench.resolve(None)] {
        let denied = bench.denied(fourth);
        assert_eq!(denied.code, DenyCode::Limit);
        assert_eq!(denied.help.as_deref(), Some("ask again in 60 s"));
    }
    let other = bench.visit("s-3", "z", Some("sk-2"));
    assert!(matches!(bench.reply(other), Reply::Started(_)));
    // What came of a run can always be told.
    bench.end("s-2");
    bench.now = bench.now.plus(Duration::from_mins(1));
    let later = bench.request("s-1", "a.b", json!({}));
    assert!(matches!(bench.reply(later), Reply::Allowed(_)));
}

#[test]
fn a_session_is_theirs_who_know_its_secret() {
    let mut bench = under("{type: public}");
    bench.visit("s-1", "mine", None);
    let stolen = bench.visit("s-1", "another", None);
    assert_eq!(bench.denied(stolen).code, DenyCode::Session);
    let inside = bench.start("s-1");
    assert_eq!(bench.denied(inside).code, DenyCode::Session);
    let back = bench.visit("s-1", "mine", None);
    assert!(matches!(bench.reply(back), Reply::Started(_)));
}
