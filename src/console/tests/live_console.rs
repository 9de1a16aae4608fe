//! Console tests with a real runtime and a real store: keys go in; the screen, agent replies and disk state
//! come out. The tests carry out requests like the driver.

use std::time::Duration;

use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use serde_json::Value;
use tokio::runtime::Runtime as Threads;

use super::fixture;
use super::test_console::TestConsole;
use crate::atlas::document::RiskTier;
use crate::base::clock::Clock as _;
use crate::base::limits::DIALOG_ARMING_TIME;
use crate::console::driver::record_reader::{QuitFlag, find_event};
use crate::console::driver::snapshot;
use crate::console::request::{ConsoleMessage, ConsoleRequest};
use crate::console::screen::queue::overrules;
use crate::engine::command::{
    DecisionRefusal, DecisionRequest, DenialReply, OperatorAction, OperatorReply,
};
use crate::engine::held::Held;
use crate::runtime::RequestReply;
use crate::runtime::snapshot::RuntimeSnapshot;
use crate::runtime::test_runtime::{PendingAnswer, RestartChanges, TestRuntime, settle};

/// An Atlas with a gate of every tier, one that needs two operators, and a denial that can be overridden.
pub(super) const RULES: &str = "\
atlas_version: '1.0'
atlas_id: com.example.rules
version: '1'
name: Rules
default_decision: allow
actions:
  - {action_id: note.add, risk_tier: low}
  - {action_id: ticket.update, risk_tier: medium}
  - {action_id: ticket.delete, risk_tier: high}
  - {action_id: user.ban, risk_tier: critical}
  - {action_id: pay, risk_tier: low}
policies:
  - {policy_id: no-pay, type: deny, actions: [pay], reason: closed, override: true}
checkpoints:
  - checkpoint_id: note-gate
    mode: blocking
    trigger: {type: action_pre, patterns: [note.add]}
    questions: [{question_id: ack, question: Looked at it?, response_type: acknowledgment}]
  - checkpoint_id: update-gate
    mode: blocking
    trigger: {type: action_pre, patterns: [ticket.update]}
    questions: [{question_id: ack, question: Looked at it?, response_type: acknowledgment}]
  - checkpoint_id: delete-gate
    mode: blocking
    trigger: {type: action_pre, patterns: [ticket.delete]}
    questions: [{question_id: why, question: Why?, response_type: text}]
  - checkpoint_id: ban-gate
    mode: blocking
    approvers: 2
    trigger: {type: risk_threshold, min_tier: critical}
    questions: [{question_id: why, question: Why?, response_type: text}]
";

pub(super) const WIDE: (u16, u16) = (120, 36);

/// The console with a real runtime.
pub(super) struct LiveConsole {
    threads: Threads,
    pub(super) rehearsal: TestRuntime,
    pub(super) console: TestConsole,
    size: (u16, u16),
}

impl LiveConsole {
    /// A console of `op-1` with one session, `s-1`, of the agent `bot`.
    pub(super) fn new() -> Self {
        Self::sized(WIDE)
    }

    /// The screen without the sealing progress, which another task updates at any time.
    pub(super) fn picture(&self) -> String {
        let text = self.console.text();
        let (head, rest) = text.split_once('\n').unwrap();
        let (before, behind) = head.split_once("chain").unwrap();
        let (state, behind) = behind.split_once("WRITE").unwrap();
        let blank = " ".repeat(state.chars().count());
        format!("{before}chain{blank}WRITE{behind}\n{rest}")
    }

    pub(super) fn sized(size: (u16, u16)) -> Self {
        let threads = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let rehearsal = threads.block_on(async {
            let rehearsal = TestRuntime::start(RULES, "op-1", fixture::now()).await;
            rehearsal.start_session("s-1").await;
            settle().await;
            rehearsal
        });
        let console = TestConsole::new((*rehearsal.snapshot()).clone(), size);
        Self {
            threads,
            rehearsal,
            console,
            size,
        }
    }

    /// Ends the console and starts another one on the same store.
    pub(super) fn again(&mut self, change: impl FnOnce(&mut RestartChanges<'_>)) {
        self.threads.block_on(self.rehearsal.restart(change));
        self.console = TestConsole::new((*self.rehearsal.snapshot()).clone(), self.size);
        self.console.now = self.rehearsal.clock.now();
        self.console.paint();
    }

    /// Sends an agent's request for an action that is held, and waits until `held` requests are held.
    pub(super) fn ask(&mut self, action: &str, params: Value, held: usize) -> PendingAnswer {
        let threads = self.threads.enter();
        let asked = self.rehearsal.request_action("s-1", action, params);
        drop(threads);
        self.catch_up(|snapshot| snapshot.held.len() == held);
        asked
    }

    /// Sends an agent's request for an action that is answered at once.
    pub(super) fn ask_told(
        &mut self,
        action: &str,
        params: Value,
    ) -> Result<RequestReply, DenialReply> {
        let asking = async { self.rehearsal.request_action("s-1", action, params).await };
        let output = self.threads.block_on(asking).unwrap();
        self.carry_out(Vec::new());
        output
    }

    /// Returns all events of a session.
    pub(super) fn events_of(&self, session: &str) -> Vec<crate::trace::event::Event> {
        let operator_handle = self.rehearsal.operator_handle();
        let events = operator_handle.events(session.parse().unwrap(), 0, 1000);
        self.threads.block_on(events).unwrap()
    }

    /// Reports a turn of the agent's conversation.
    pub(super) fn turn(&mut self, turn: &Value) {
        self.threads.block_on(self.rehearsal.turn("s-1", turn));
        self.carry_out(Vec::new());
    }

    /// Waits for a snapshot that satisfies `wanted`, and shows it.
    pub(super) fn catch_up(&mut self, wanted: impl Fn(&RuntimeSnapshot) -> bool) {
        let snapshot = self.threads.block_on(self.rehearsal.wait_for(wanted));
        let requests = self.console.snapshot((*snapshot).clone());
        self.carry_out(requests);
    }

    /// Returns the reply to the agent, or `None` while it waits.
    pub(super) fn agent_reply(
        &self,
        asked: &mut PendingAnswer,
    ) -> Option<Result<RequestReply, DenialReply>> {
        self.threads.block_on(async {
            settle().await;
            if asked.is_finished() {
                return Some(asked.await.unwrap());
            }
            None
        })
    }

    /// Returns true if the agent still waits.
    pub(super) fn waits(&self, asked: &PendingAnswer) -> bool {
        self.threads.block_on(settle());
        !asked.is_finished()
    }

    /// Carries out the requests of the screen like the driver.
    pub(super) fn carry_out(&mut self, requests: Vec<ConsoleRequest>) {
        for request in requests {
            let operator_handle = self.rehearsal.operator_handle();
            let message = self.threads.block_on(async {
                match request {
                    ConsoleRequest::Decide(decide) => {
                        let gate = decide.gate.clone();
                        Some(ConsoleMessage::Decided(
                            gate,
                            operator_handle.decide(decide).await,
                        ))
                    }
                    ConsoleRequest::Operate(operate) => {
                        let reply = operator_handle.operate(operate.clone()).await;
                        Some(ConsoleMessage::Operated(operate, reply))
                    }
                    ConsoleRequest::ActOnThread(thread, act) => {
                        let reply = operator_handle
                            .act_on_thread(thread.clone(), act.clone())
                            .await;
                        Some(ConsoleMessage::ThreadActed(thread, act, reply))
                    }
                    ConsoleRequest::KeepDraft(gate, draft) => {
                        operator_handle.store_draft(gate, draft).await;
                        settle().await;
                        None
                    }
                    ConsoleRequest::KeepThreadDraft(thread, draft) => {
                        operator_handle.store_draft(thread, draft).await;
                        settle().await;
                        None
                    }
                    ConsoleRequest::FindEvent(session, event) => {
                        let left = QuitFlag::default();
                        let found =
                            find_event(&operator_handle, session.clone(), event, left).await;
                        Some(ConsoleMessage::EventFound(session, found))
                    }
                    ConsoleRequest::Snapshot(ticket, ask) => {
                        let output =
                            snapshot::answer(&operator_handle, ask, QuitFlag::default()).await;
                        Some(ConsoleMessage::Snapshot(ticket, output))
                    }
                    ConsoleRequest::LoadSessions => Some(ConsoleMessage::Sessions(
                        operator_handle.sessions_and_log().await,
                    )),
                    ConsoleRequest::Verify(progress) => {
                        let checked = operator_handle.verify_watched(progress).await.transpose();
                        checked.map(ConsoleMessage::Verified)
                    }
                    _ => None,
                }
            });
            if let Some(message) = message {
                let more = self.console.message(message);
                self.carry_out(more);
            }
        }
        let snapshot = self.rehearsal.snapshot();
        if snapshot.revision != self.console.app.snapshot.revision {
            let requests = self.console.snapshot((*snapshot).clone());
            self.carry_out(requests);
        }
    }

    pub(super) fn press(&mut self, code: KeyCode) {
        let requests = self.console.press(code);
        self.carry_out(requests);
    }

    pub(super) fn presses(&mut self, code: KeyCode, times: usize) {
        for _ in 0..times {
            self.press(code);
        }
    }

    pub(super) fn with(&mut self, code: KeyCode, modifiers: KeyModifiers) {
        let requests = self
            .console
            .event(&Event::Key(KeyEvent::new(code, modifiers)));
        self.carry_out(requests);
    }

    pub(super) fn types(&mut self, text: &str) {
        let requests = self.console.type_text(text);
        self.carry_out(requests);
    }

    /// Types a command into the palette.
    pub(super) fn command(&mut self, text: &str) {
        self.press(KeyCode::Char(':'));
        self.types(text);
        self.press(KeyCode::Enter);
    }

    pub(super) fn wait(&mut self, span: Duration) {
        self.rehearsal.clock.advance(span);
        self.threads.block_on(settle());
        self.console.wait(span);
        self.carry_out(Vec::new());
    }

    /// Opens a request and waits until keys count.
    pub(super) fn open(&mut self, id: &str) {
        self.select(id);
        self.press(KeyCode::Enter);
        self.wait(DIALOG_ARMING_TIME);
    }

    /// Selects a request in the queue.
    pub(super) fn select(&mut self, id: &str) {
        self.press(KeyCode::Char('u'));
        self.press(KeyCode::Home);
        for _ in 0..20 {
            let held = self.console.app.screens.queue.selected();
            if held.is_some_and(|held| held.id.as_str() == id) {
                return;
            }
            self.press(KeyCode::Down);
        }
        panic!("{id} is not in the list:\n{}", self.console.text());
    }

    /// Goes from an open empty dialog to the button that passes, with every proof typed.
    pub(super) fn fill(&mut self, id: &str, answer: &str) {
        let held = self.held(id);
        self.types(answer);
        self.presses(KeyCode::Tab, 3);
        if held.tier() == RiskTier::Low && !overrules(&held) {
            return;
        }
        self.press(KeyCode::Enter);
        // Scrolls through everything that will be written, even on a small screen.
        self.presses(KeyCode::PageDown, 4);
        if held.tier() == RiskTier::Medium {
            self.press(KeyCode::Tab);
            return;
        }
        self.types(&held.request_hash.short(4));
        self.press(KeyCode::Tab);
        if held.tier() == RiskTier::Critical || overrules(&held) {
            self.types(held.action());
            self.press(KeyCode::Tab);
        }
        self.press(KeyCode::Tab);
    }

    /// Passes a request with all the keys that it needs.
    pub(super) fn pass(&mut self, id: &str, answer: &str) {
        self.open(id);
        self.fill(id, answer);
        self.press(KeyCode::Enter);
    }

    /// Requests an action for the first time, and passes it.
    pub(super) fn pass_one(&mut self, action: &str, answer: &str) {
        let held = self.held_on_disk().len();
        let params = serde_json::json!({ "at": self.console.now.to_string() });
        let mut asked = self.ask(action, params, held + 1);
        let id = self.held_on_disk().pop().unwrap();
        self.pass(&id, answer);
        let output = self.agent_reply(&mut asked);
        assert!(
            output.is_some_and(|output| output.is_ok()),
            "{}",
            self.console.text()
        );
    }

    pub(super) fn held(&self, id: &str) -> Held {
        let snapshot = self.rehearsal.snapshot();
        let held = snapshot.held.iter().find(|held| held.id.as_str() == id);
        (**held.unwrap_or_else(|| panic!("{id} is not held"))).clone()
    }

    /// Returns the ids of the held requests on disk.
    pub(super) fn held_on_disk(&self) -> Vec<String> {
        let held = self.rehearsal.held_on_disk();
        held.iter().map(|held| held.id.to_string()).collect()
    }

    pub(super) fn on_disk(&self, event_type: &str) -> Vec<Value> {
        self.rehearsal.on_disk(event_type)
    }

    /// Asserts that nothing was decided: not on disk, and not in the engine.
    #[track_caller]
    pub(super) fn undecided(&self, held: &[&str]) {
        for event_type in ["checkpoint_passed", "checkpoint_blocked", "risk_verified"] {
            assert_eq!(self.on_disk(event_type), [] as [Value; 0], "{event_type}");
        }
        assert_eq!(self.held_on_disk(), held, "{}", self.console.text());
    }

    /// Sends a decision directly to the runtime, without the screen.
    pub(super) fn decide(&mut self, decide: DecisionRequest) -> OperatorReply {
        let operator_handle = self.rehearsal.operator_handle();
        let reply = self.threads.block_on(operator_handle.decide(decide));
        self.carry_out(Vec::new());
        reply
    }

    pub(super) fn operate(&mut self, operate: OperatorAction) -> Result<(), DecisionRefusal> {
        let operator_handle = self.rehearsal.operator_handle();
        let reply = self.threads.block_on(operator_handle.operate(operate));
        self.carry_out(Vec::new());
        reply
    }

    pub(super) fn start_session(&mut self, session: &str) {
        self.threads.block_on(self.rehearsal.start_session(session));
        self.carry_out(Vec::new());
    }

    /// Ends the agent's session.
    pub(super) fn end_session(&mut self) {
        self.threads.block_on(async {
            self.rehearsal.end_session("s-1").await;
            settle().await;
        });
        self.carry_out(Vec::new());
    }
}
