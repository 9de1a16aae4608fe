//! Tests of access control: API keys, session owners and request rates.

use std::time::Duration;

use super::*;

impl EngineBench {
    /// Starts a session of an agent that connects through a server.
    fn connect(&mut self, session: &str, secret: &str, api_key: Option<&str>) -> ReplyId {
        self.start_owned_session("bot", session, secret, api_key)
    }

    fn visit_as(&mut self, session: &str, agent: &str, secret: &str) -> ReplyId {
        self.start_owned_session(agent, session, secret, None)
    }

    fn start_owned_session(
        &mut self,
        agent: &str,
        session: &str,
        secret: &str,
        api_key: Option<&str>,
    ) -> ReplyId {
        let start = StartSession {
            delivery: crate::engine::command::DeliveryTime::Now,
            session: session.parse().unwrap(),
            agent: agent.to_owned(),
            agent_version: None,
            intent: None,
            owner: Some(SessionOwner {
                secret: Digest::of(secret),
                api_key: api_key.map(str::to_owned),
                from: Some(Caller::Socket {
                    uid: 7,
                    leader: None,
                    pid: Some(42),
                }),
            }),
        };
        self.reply_id(|reply_id| EngineCommand::StartSession(reply_id, start))
    }
}

fn under(rules: &str) -> EngineBench {
    let body = format!(
        "steward: {{id: s, access: {rules}}}\nactions: [{{action_id: a.b, name: x, risk_tier: low}}]"
    );
    EngineBench::new(&[&atlas(&body)])
}

// covers B16
#[test]
fn an_atlas_with_api_keys_admits_only_agents_with_a_known_key() {
    let mut bench = under("{type: authenticated, api_keys: ['sk-acme-*', other]}");
    for (key, told) in [
        (None, "requires an API key, and none was sent"),
        (
            Some("sk-evil-1"),
            "does not accept the API key that was sent",
        ),
        (Some(""), "does not accept the API key that was sent"),
    ] {
        let refused = bench.connect("s-1", "x", key);
        let denied = bench.denied(refused);
        assert_eq!(denied.code, DenyCode::Unauthorized);
        assert!(denied.reason.contains(told), "{}", denied.reason);
        assert!(!denied.reason.contains("sk-evil"), "{}", denied.reason);
    }
    assert!(bench.engine.sessions().is_empty());
    for (session, key) in [("s-1", "sk-acme-7"), ("s-2", "other")] {
        let let_in = bench.connect(session, "x", Some(key));
        assert!(matches!(
            bench.reply(let_in),
            Reply::Agent(AgentReply::Started(_))
        ));
    }
    // A resumed session needs the key again.
    let back = bench.connect("s-1", "x", None);
    assert_eq!(bench.denied(back).code, DenyCode::Unauthorized);
    let kept = serde_json::to_string(&bench.engine.sessions()).unwrap();
    assert!(!kept.contains("sk-acme"), "{kept}");
}

#[test]
fn public_atlases_and_in_process_agents_need_no_key() {
    let mut bench = under("{type: public}");
    let let_in = bench.connect("s-1", "x", None);
    assert!(matches!(
        bench.reply(let_in),
        Reply::Agent(AgentReply::Started(_))
    ));
    let mut bench = under("{type: authenticated, api_keys: []}");
    let shut = bench.connect("s-1", "x", Some("sk-1"));
    assert_eq!(bench.denied(shut).code, DenyCode::Unauthorized);
    let inside = bench.start("s-1");
    assert!(matches!(
        bench.reply(inside),
        Reply::Agent(AgentReply::Started(_))
    ));
}

// covers B16
#[test]
fn requests_per_minute_limit_counts_all_sessions_of_a_key() {
    let rules = "{type: authenticated, api_keys: ['sk-*'], rate_limit: {requests_per_minute: 3}}";
    let mut bench = under(rules);
    bench.connect("s-1", "x", Some("sk-1"));
    // Another session with the same key counts together with it; resuming does not count.
    bench.connect("s-2", "y", Some("sk-1"));
    bench.connect("s-1", "x", Some("sk-1"));
    let third = bench.request("s-1", "a.b", json!({}));
    assert!(matches!(
        bench.reply(third),
        Reply::Agent(AgentReply::Allowed(_))
    ));
    for fourth in [bench.request("s-2", "a.b", json!({})), bench.resolve(None)] {
        let denied = bench.denied(fourth);
        assert_eq!(denied.code, DenyCode::Limit);
        assert_eq!(denied.help.as_deref(), Some("try again in 60 s"));
    }
    let other = bench.connect("s-3", "z", Some("sk-2"));
    assert!(matches!(
        bench.reply(other),
        Reply::Agent(AgentReply::Started(_))
    ));
    // Reports of results are never limited.
    bench.end("s-2");
    bench.now = bench.now.plus(Duration::from_mins(1));
    let later = bench.request("s-1", "a.b", json!({}));
    assert!(matches!(
        bench.reply(later),
        Reply::Agent(AgentReply::Allowed(_))
    ));
}

// covers B16
#[test]
fn callers_without_a_key_share_one_rate_limit() {
    let mut bench = under("{type: public, rate_limit: {requests_per_minute: 2}}");
    bench.visit_as("s-1", "bot-1", "x");
    bench.visit_as("s-2", "bot-2", "y");
    let third = bench.visit_as("s-3", "bot-3", "z");
    assert_eq!(bench.denied(third).code, DenyCode::Limit);
}

#[test]
fn only_the_owner_of_the_secret_can_resume_a_session() {
    let mut bench = under("{type: public}");
    bench.connect("s-1", "mine", None);
    let stolen = bench.connect("s-1", "another", None);
    assert_eq!(bench.denied(stolen).code, DenyCode::Session);
    let inside = bench.start("s-1");
    assert_eq!(bench.denied(inside).code, DenyCode::Session);
    let back = bench.connect("s-1", "mine", None);
    assert!(matches!(
        bench.reply(back),
        Reply::Agent(AgentReply::Started(_))
    ));
}

/// Returns the recorded misuse of a kind.
fn recorded_misuse(bench: &EngineBench, kind: &str) -> Vec<String> {
    let records = bench.payloads("error_occurred").into_iter();
    let of_kind = records.filter(|record| record["error_type"] == kind);
    let words = of_kind.map(|record| record["message"].as_str().unwrap().to_owned());
    words.collect()
}

impl EngineBench {
    /// Asks, as a client of a server, whether a session belongs to this secret.
    fn claim_to_own(&mut self, session: &str, secret: Option<&str>) -> ReplyId {
        let consult = consultation::Consultation::Owner {
            session: session.parse().unwrap(),
            owner: secret.map(Digest::of),
            from: Some(Caller::Http("127.0.0.1:4711".to_owned())),
        };
        self.reply_id(|reply_id| EngineCommand::Consult(reply_id, consult))
    }
}

// covers B16
#[test]
fn session_takeover_attempts_are_recorded_in_that_session() {
    let mut bench = under("{type: public}");
    bench.connect("s-1", "mine", None);
    bench.connect("s-2", "other", None);
    let mine = bench.claim_to_own("s-1", Some("mine"));
    assert!(matches!(
        bench.reply(mine),
        Reply::Agent(AgentReply::Consulted(_))
    ));
    assert_eq!(recorded_misuse(&bench, "session_takeover"), [""; 0]);

    bench.connect("s-1", "another", None);
    let told = "a caller at the socket (uid 7, pid 42) named this session with a wrong key, \
                and was refused";
    assert_eq!(recorded_misuse(&bench, "session_takeover"), [told]);
    let record = bench.drafts().last().unwrap();
    assert_eq!(record.session_id.as_str(), "s-1");
    // On disk before the refusal is sent, at every level of detail.
    assert_eq!(record.durability, crate::trace::event::Durability::Sync);
    for (secret, told) in [(None, "without its key"), (Some("no"), "with a wrong key")] {
        bench.advance(60);
        let refused = bench.claim_to_own("s-2", secret);
        assert_eq!(bench.denied(refused).code, DenyCode::Session);
        let last = recorded_misuse(&bench, "session_takeover").pop().unwrap();
        let told = format!("over HTTP (127.0.0.1:4711) named this session {told}");
        assert!(last.contains(&told), "{last}");
    }
    // A session that does not exist or has ended cannot be taken over.
    bench.end("s-1");
    let before = recorded_misuse(&bench, "session_takeover").len();
    bench.advance(60);
    bench.claim_to_own("s-1", None);
    bench.claim_to_own("s-9", Some("no"));
    bench.connect("s-1", "another", None);
    assert_eq!(recorded_misuse(&bench, "session_takeover").len(), before);
}

#[test]
fn repeated_takeover_attempts_are_counted_and_recorded_once_a_minute() {
    let mut bench = under("{type: public}");
    bench.connect("s-1", "mine", None);
    for _ in 0..1000 {
        bench.claim_to_own("s-1", None);
    }
    assert_eq!(recorded_misuse(&bench, "session_takeover").len(), 1);
    // The next attempt after a minute reports the number of attempts in between.
    bench.advance(60);
    bench.claim_to_own("s-1", None);
    let all = recorded_misuse(&bench, "session_takeover");
    assert_eq!(all.len(), 2);
    assert!(
        all[1].ends_with(" (999 more since the last record)"),
        "{all:?}"
    );
    // Any later command of the session reports them too, and its end reports them at once.
    bench.claim_to_own("s-1", None);
    bench.request("s-1", "a.b", json!({}));
    assert_eq!(recorded_misuse(&bench, "session_takeover").len(), 2);
    bench.advance(60);
    bench.request("s-1", "a.b", json!({}));
    assert_eq!(recorded_misuse(&bench, "session_takeover").len(), 3);
    bench.request("s-1", "a.b", json!({}));
    assert_eq!(recorded_misuse(&bench, "session_takeover").len(), 3);
    bench.claim_to_own("s-1", None);
    bench.claim_to_own("s-1", None);
    bench.end("s-1");
    let all = recorded_misuse(&bench, "session_takeover");
    assert_eq!(all.len(), 4);
    assert!(all[3].contains("(1 more since"), "{all:?}");
}

#[test]
fn reports_of_unknown_runs_are_recorded_at_a_bounded_rate() {
    let mut bench = under("{type: public}");
    bench.connect("s-1", "mine", None);
    let asked = bench.request("s-1", "a.b", json!({}));
    let execution = bench.allowed(asked).execution.clone();
    let completed = |execution: &crate::base::id::ExecutionId| ActionCompletion {
        delivery: crate::engine::command::DeliveryTime::Now,
        session: "s-1".parse().unwrap(),
        execution: execution.clone(),
        result: Ok(String::new()),
    };
    let done = completed(&execution);
    bench.reply_id(|reply_id| EngineCommand::CompleteAction(reply_id, done.clone()));
    assert_eq!(recorded_misuse(&bench, "unknown_execution"), [""; 0]);
    for _ in 0..100 {
        let again =
            bench.reply_id(|reply_id| EngineCommand::CompleteAction(reply_id, done.clone()));
        assert_eq!(bench.denied(again).code, DenyCode::BadRequest);
        let forged = completed(&"forged".parse().unwrap());
        let forged = bench.reply_id(|reply_id| EngineCommand::CompleteAction(reply_id, forged));
        assert_eq!(bench.denied(forged).code, DenyCode::BadRequest);
    }
    let all = recorded_misuse(&bench, "unknown_execution");
    assert_eq!(all.len(), 1);
    assert!(
        all[0].contains("was not allowed, or is already complete"),
        "{all:?}"
    );
    bench.end("s-1");
    let all = recorded_misuse(&bench, "unknown_execution");
    assert!(all[1].contains("run `forged` was not allowed"), "{all:?}");
    assert!(all[1].contains("(198 more since"), "{all:?}");
}
