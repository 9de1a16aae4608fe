//! A record worth reading: sessions that were let in, held, refused, overruled, and left alone.

use std::sync::Arc;
use std::time::Duration;

use cra_core::base::clock::ManualClock;
use cra_core::engine::command::{
    ActionCompletion, ActionError, EndSession, ErrorReport, FinalStatus, InputReport, InputSource,
    Ruling, StartSession,
};
use cra_core::engine::held::Held;
use cra_core::runtime::RequestReply;
use cra_core::store::Store;
use serde_json::{Value, json};

use crate::support::{Bench, clock, decide, request};

/// Text that tries to be more than text.
pub(super) const HOSTILE: &str = "</pre><script>alert(1)</script>\u{202e}\u{1b}[31m\u{0}=cmd|'x'!A1 \" ' & <img src=x onerror=y>";

/// A console with an agent and an operator, to record a session.
pub(super) struct Life {
    pub(super) bench: Bench,
    clock: Arc<ManualClock>,
}

impl Life {
    pub(super) async fn new(store: Arc<dyn Store>) -> Self {
        let clock = clock();
        let bench = Bench::start(store, Arc::clone(&clock)).await;
        Self { bench, clock }
    }

    pub(super) fn wait(&self, millis: u64) {
        self.clock.advance(Duration::from_millis(millis));
    }

    pub(super) async fn begin(&self, session: &str, agent: &str, intent: &str) {
        let start = StartSession {
            delivery: cra_core::engine::command::DeliveryTime::Now,
            session: session.parse().unwrap(),
            agent: agent.to_owned(),
            agent_version: Some("2.4.1".to_owned()),
            intent: Some(intent.to_owned()),
            owner: None,
        };
        let agents = self.bench.runtime.agent_handle();
        agents.start_session(start).await.unwrap();
    }

    /// Held request of a session.
    pub(super) async fn held(&self, session: &str) -> Arc<Held> {
        let mine = |held: &&Arc<Held>| held.session.as_str() == session;
        let snapshot = self
            .bench
            .wait_until(|s| s.held.iter().any(|h| mine(&h)))
            .await;
        Arc::clone(snapshot.held.iter().find(mine).unwrap())
    }

    pub(super) async fn pass(&self, session: &str) {
        let held = self.held(session).await;
        self.bench.pass(&held).await;
    }

    pub(super) async fn deny(&self, session: &str, reason: &str) {
        let held = self.held(session).await;
        let reason = reason.to_owned();
        let operator = self.bench.runtime.operator_handle();
        operator
            .decide(decide(&held, Ruling::Deny { reason }))
            .await;
    }

    pub(super) async fn run(&self, session: &str, action: &str, params: Value, millis: u64) {
        let agents = self.bench.runtime.agent_handle();
        let pending = agents
            .request_action(request(session, action, params))
            .await;
        let Ok(RequestReply::Allowed(allowed)) = pending else {
            panic!("{action} is not allowed: {pending:?}");
        };
        self.complete(session, allowed.execution, Ok("done".to_owned()), millis)
            .await;
    }

    pub(super) async fn complete(
        &self,
        session: &str,
        execution: cra_core::base::id::ExecutionId,
        result: Result<String, ActionError>,
        millis: u64,
    ) {
        self.wait(millis);
        let completed = ActionCompletion {
            delivery: cra_core::engine::command::DeliveryTime::Now,
            session: session.parse().unwrap(),
            execution,
            result,
        };
        let agents = self.bench.runtime.agent_handle();
        agents.complete_action(completed).await.unwrap();
    }

    /// Requests a gated action, decides it, and completes it if it passed.
    pub(super) async fn ask(&self, session: &str, action: &str, params: Value, pass: Option<&str>) {
        let agents = self.bench.runtime.agent_handle();
        let wanted = request(session, action, params);
        let pending = tokio::spawn(async move { agents.request_action(wanted).await });
        self.held(session).await;
        self.wait(12_400);
        match pass {
            None => self.pass(session).await,
            Some(reason) => self.deny(session, reason).await,
        }
        match pending.await.unwrap() {
            Ok(RequestReply::Allowed(allowed)) => {
                let failed = ActionError {
                    code: "E409".to_owned(),
                    message: "the ticket is locked".to_owned(),
                };
                self.complete(session, allowed.execution, Err(failed), 700)
                    .await;
            }
            Ok(other) => panic!("{other:?}"),
            Err(_) => {}
        }
    }

    pub(super) async fn say(&self, session: &str, text: &str) {
        let input = InputReport {
            session: session.parse().unwrap(),
            text: text.to_owned(),
            source: InputSource::User,
            reaches_asked_agent: false,
            waits_for_start: false,
            deadline: None,
        };
        self.bench
            .runtime
            .agent_handle()
            .input(input)
            .await
            .unwrap();
    }

    pub(super) async fn fail(&self, session: &str, message: &str) {
        let report = ErrorReport {
            session: session.parse().unwrap(),
            error_type: "timeout".to_owned(),
            error_code: None,
            message: message.to_owned(),
            recoverable: true,
            stack_trace: None,
        };
        let agents = self.bench.runtime.agent_handle();
        agents.report_error(report).await.unwrap();
    }

    pub(super) async fn end(&self, session: &str, summary: &str) {
        let end = EndSession {
            delivery: cra_core::engine::command::DeliveryTime::Now,
            session: session.parse().unwrap(),
            status: FinalStatus::Completed,
            summary: Some(summary.to_owned()),
        };
        let agents = self.bench.runtime.agent_handle();
        agents.end_session(end).await.unwrap();
    }

    pub(super) async fn stop(self) {
        self.bench.runtime.stop().await;
    }
}

/// Sessions that began alike and went on differently, and one whose texts mean harm.
pub(super) async fn lived(store: Arc<dyn Store>) {
    let life = Life::new(store).await;
    life.begin("s-1", "claude-code", "close stale tickets of March")
        .await;
    life.wait(4_200);
    life.pass("s-1").await;
    life.wait(900);
    life.say("s-1", "please look at T-17 and close it").await;
    life.run("s-1", "ticket.get", json!({"ticket_id": "T-17"}), 1_350)
        .await;
    life.wait(2_000);
    let delete = json!({"ticket_id": "T-17", "reason": "duplicate of T-12"});
    life.ask("s-1", "ticket.delete", delete.clone(), None).await;
    life.fail("s-1", "no answer from the ticket server within 5 s")
        .await;
    life.wait(1_500);
    life.ask(
        "s-1",
        "ticket.delete",
        json!({"ticket_id": "T-18"}),
        Some("T-18 is still open"),
    )
    .await;
    life.wait(800);
    life.end("s-1", "one ticket looked at, none deleted").await;

    life.begin("s-2", "claude-code", "close stale tickets of March")
        .await;
    life.wait(2_100);
    life.pass("s-2").await;
    life.say("s-2", "please look at T-17 and close it").await;
    life.run("s-2", "ticket.get", json!({"ticket_id": "T-17"}), 1_100)
        .await;
    life.ask(
        "s-2",
        "ticket.delete",
        delete,
        Some("ask the customer first"),
    )
    .await;
    life.end("s-2", "").await;

    life.begin("s-3", HOSTILE, HOSTILE).await;
    life.pass("s-3").await;
    let agents = life.bench.runtime.agent_handle();
    let hostile = json!({"ticket_id": HOSTILE, HOSTILE: [1, {"deep": HOSTILE}]});
    let wanted = request("s-3", "ticket.delete", hostile);
    let pending = tokio::spawn(async move { agents.request_action(wanted).await });
    life.held("s-3").await;
    life.stop().await;
    pending.abort();
}
