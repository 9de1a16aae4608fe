//! Many agents at a real socket over a real store, an operator who decides about what they are held for, and the
//! account of it afterwards: every reply that an agent received must be recorded, once, in chains that verify.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cra_core::atlas::load_str;
use cra_core::base::clock::SystemClock;
use cra_core::base::id::{RandomIds, SessionId};
use cra_core::engine::command::{DecisionRefusal, DecisionRequest, OperatorReply, Ruling};
use cra_core::engine::held::{Held, HeldSubject};
use cra_core::gateway::protocol::call::CallError;
use cra_core::gateway::protocol::proof::AnswerSigner;
use cra_core::gateway::transport::client::GatewayClient;
use cra_core::gateway::transport::gateway_state::GatewayState;
use cra_core::gateway::transport::socket_lock::SocketLock;
use cra_core::gateway::transport::unix_server::UnixServer;
use cra_core::runtime::extension::Registry;
use cra_core::runtime::notices::{NoticesOff, Webhooks};
use cra_core::runtime::snapshot::ConsoleAccess;
use cra_core::runtime::{OperatorHandle, Runtime, RuntimeParts};
use cra_core::store::Store;
use cra_core::store::sqlite::SqliteStore;
use cra_core::trace::event::Event;
use cra_core::trace::head::LogHead;
use cra_core::trace::note::{Signer, Verifier};
use cra_core::trace::verification::TrustAnchors;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::Semaphore;

/// One action passes, one is held, one is denied.
const ATLAS: &str = r#"
atlas_version: "1.0"
atlas_id: "org.test.crowd"
version: "1.0.0"
name: "ConnectionShortage"
default_decision: allow
actions:
  - { action_id: "note.read", name: "Read", risk_tier: low }
  - { action_id: "note.write", name: "Write", risk_tier: medium }
  - { action_id: "note.wipe", name: "Wipe", risk_tier: high }
policies:
  - { policy_id: "never-wipe", type: deny, actions: ["note.wipe"], reason: "nobody wipes" }
checkpoints:
  - checkpoint_id: "write-gate"
    name: "Writes"
    trigger: { type: action_pre, patterns: ["note.write"] }
    mode: blocking
    questions:
      - { question_id: "why", question: "Why?", response_type: text }
"#;

/// Decisions that the operator sends at a time.
const DECISIONS: usize = 32;

/// Events of a session that are read at a time.
const PAGE: usize = 1000;

/// A console without a screen.
pub(crate) struct Console {
    pub(crate) runtime: Runtime,
    pub(crate) server: UnixServer,
    key: Verifier,
    folder: TempDir,
}

/// The seed of its key.
pub(crate) const SEED: [u8; 32] = [7; 32];

impl Console {
    pub(crate) async fn open() -> Self {
        Self::under(ATLAS).await
    }

    pub(crate) async fn under(atlas: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(folder.path()).expect("a store"));
        let log = store.log().await.expect("a log").log;
        let signer = Signer::new(&LogHead::origin(&log), &SEED).expect("a key");
        let key = signer.verifier();
        let answers = AnswerSigner::derive(&signer);
        let runtime = Runtime::start(RuntimeParts {
            store,
            atlases: vec![load_str("crowd.yaml", atlas).expect("an Atlas").atlas],
            clock: Arc::new(SystemClock),
            ids: Box::new(RandomIds),
            operator: "op-1".to_owned(),
            access: ConsoleAccess::Write,
            extensions: Registry::default(),
            signer,
            head_file: None,
            webhooks: Webhooks::Off(NoticesOff::Setting),
        });
        let runtime = runtime.await.expect("a runtime");
        let socket_lock =
            SocketLock::acquire(&folder.path().join("run/console.sock")).expect("a place");
        let gateway = GatewayState::new(runtime.agent_handle(), answers);
        let server = UnixServer::start(socket_lock, gateway).expect("the server starts");
        Self {
            runtime,
            server,
            key,
            folder,
        }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.server.path().to_owned()
    }

    /// Stops it, and reads back what is on disk: every chain is checked as `cra trace verify` does.
    pub(crate) async fn record(self) -> BTreeMap<SessionId, Vec<Event>> {
        drop(self.server);
        self.runtime.stop().await;
        let store = loop {
            // The last reader of the one before may still be closing it.
            match SqliteStore::open(self.folder.path()) {
                Ok(store) => break store,
                Err(cra_core::store::StoreError::InUse { .. }) => tokio::task::yield_now().await,
                Err(error) => panic!("{error}"),
            }
        };
        let report = store
            .verify(TrustAnchors::nothing().with_key(self.key))
            .await;
        let report = report.expect("a report");
        assert!(report.is_sound(), "{:?}", report.first_fault());
        let mut all = BTreeMap::new();
        for session in store.sessions().await.expect("sessions") {
            let id = session.session;
            let mut events: Vec<Event> = Vec::new();
            loop {
                let from = events.len() as u64;
                let page = store.events(id.clone(), from, PAGE).await.expect("events");
                if page.is_empty() {
                    break;
                }
                events.extend(page);
            }
            all.insert(id, events);
        }
        all
    }
}

/// An agent at the socket.
pub(crate) struct Agent {
    speaker: GatewayClient,
    pub(crate) session: SessionId,
    key: Value,
}

impl Agent {
    pub(crate) async fn begin(socket: &Path, name: &str) -> Self {
        let mut speaker = GatewayClient::connect(socket).await.expect("a connection");
        let start = json!({"agent": "bot", "session": name});
        let started = speaker.call("session.start", &start).await;
        Self {
            speaker,
            session: name.parse().expect("a name"),
            key: started.expect("a session")["key"].clone(),
        }
    }

    /// Comes back on another connection, and takes its session up again.
    #[allow(dead_code, reason = "only a bench does that")]
    pub(crate) async fn come_back(&mut self, socket: &Path) {
        self.speaker = GatewayClient::connect(socket).await.expect("a connection");
        let start = json!({"agent": "bot", "session": self.session, "key": self.key});
        let started = self.speaker.call("session.start", &start).await;
        started.expect("its session");
    }

    pub(crate) async fn say(&mut self, method: &str, params: Value) -> Result<Value, CallError> {
        let params = self.signed(params);
        self.speaker.call(method, &params).await
    }

    /// Asks for an action that is like no other.
    pub(crate) async fn ask(&mut self, action: &str, number: u64) -> Result<Value, CallError> {
        let request = json!({"action": action, "params": {"number": number}});
        self.say("action.request", request).await
    }

    /// Asks, and is gone before there is an answer; then comes back on another connection.
    async fn ask_and_leave(&mut self, action: &str, number: u64, socket: &Path) {
        let asking = self.ask(action, number);
        // The request was written by then. Its answer is lost with the connection.
        let _ = tokio::time::timeout(Duration::ZERO, asking).await;
        self.speaker = GatewayClient::connect(socket).await.expect("a connection");
    }

    fn signed(&self, mut params: Value) -> Value {
        let fields = params.as_object_mut().expect("an object");
        fields.insert("session".to_owned(), self.session.to_string().into());
        fields.insert("key".to_owned(), self.key.clone());
        params
    }
}

/// Outcome of a request, as the agent received it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestOutcome {
    /// Allowed, run and reported as completed.
    Ran,
    /// A policy denies it.
    Denied,
    /// An operator refused it.
    Refused,
}

/// Replies that one agent received, by the number of the request.
#[derive(Debug)]
pub(crate) struct AgentReplies {
    pub(crate) session: SessionId,
    pub(crate) outcomes: BTreeMap<u64, RequestOutcome>,
    /// Requests that were asked twice, because the agent left in between.
    pub(crate) left: BTreeSet<u64>,
    /// Latencies of answers that waited for no operator.
    pub(crate) waits: Vec<Duration>,
}

/// End of the load.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Until {
    /// Number of requests of each agent.
    #[allow(dead_code, reason = "a bench goes by time")]
    Rounds(u64),
    /// No request is begun after that.
    Time(Instant),
}

impl Until {
    fn is_over(self, round: u64) -> bool {
        match self {
            Self::Rounds(rounds) => round >= rounds,
            Self::Time(end) => Instant::now() >= end,
        }
    }
}

/// Runs `agents` agents, each with its own connection and session, and an operator.
pub(crate) async fn run_agents(console: &Console, agents: u64, until: Until) -> Vec<AgentReplies> {
    let operator = tokio::spawn(operate(console.runtime.operator_handle()));
    let room = Arc::new(Semaphore::new(connections()));
    let all = (0..agents).map(|agent| {
        let (socket, room) = (console.socket(), Arc::clone(&room));
        tokio::spawn(async move {
            let _room = room.acquire_owned().await.expect("room");
            live(&socket, agent, until).await
        })
    });
    let mut replies = Vec::new();
    for one in all.collect::<Vec<_>>() {
        replies.push(one.await.expect("an agent"));
    }
    operator.abort();
    replies
}

/// Connections that this process may have to itself: both ends of each are here.
fn connections() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits
        .lines()
        .find(|limit| limit.starts_with("Max open files"));
    let files = line.and_then(|limit| limit.split_whitespace().nth(3)?.parse::<usize>().ok());
    files.unwrap_or(256).saturating_sub(128) / 2
}

/// One agent's life: it begins, asks, reports, is held, denied, leaves and comes back, and ends.
async fn live(socket: &Path, agent: u64, until: Until) -> AgentReplies {
    let mut one = Agent::begin(socket, &format!("s-{agent}")).await;
    let mut replies = AgentReplies {
        session: one.session.clone(),
        outcomes: BTreeMap::new(),
        left: BTreeSet::new(),
        waits: Vec::new(),
    };
    let mut round = 0;
    while !until.is_over(round) {
        let number = agent * 1_000_000 + round;
        let begun = Instant::now();
        let (action, waits) = match (agent + round) % 10 {
            0..6 => ("note.read", true),
            6 => ("note.wipe", true),
            7 | 8 => ("note.write", false),
            _ => {
                one.ask_and_leave("note.write", number, socket).await;
                replies.left.insert(number);
                ("note.write", false)
            }
        };
        let answer = one.ask(action, number).await;
        if waits {
            replies.waits.push(begun.elapsed());
        }
        let outcome = match answer {
            Ok(allowed) => {
                let execution = &allowed["execution"];
                assert!(execution.is_string(), "{allowed}");
                let done = json!({"execution": execution, "result": format!("done {number}")});
                one.say("action.completed", done).await.expect("noted");
                RequestOutcome::Ran
            }
            Err(CallError::Fault(fault)) => {
                match fault.deny_code().map(|value| format!("{value:?}")) {
                    Some(code) if code == "Refused" => RequestOutcome::Refused,
                    Some(code) if code == "Policy" => RequestOutcome::Denied,
                    other => panic!("{other:?}: {fault:?}"),
                }
            }
            Err(other) => panic!("{other:?}"),
        };
        replies.outcomes.insert(number, outcome);
        round += 1;
    }
    let output = json!({"text": format!("agent {agent} is done")});
    one.say("output", output).await.expect("noted");
    one.say("session.end", json!({})).await.expect("ended");
    replies
}

/// Decides every held request, without end: even numbers pass.
async fn operate(operator: OperatorHandle) {
    let mut snapshots = operator.snapshots();
    let mut known = BTreeSet::new();
    let mut deciding = FuturesUnordered::new();
    loop {
        let held = snapshots.borrow_and_update().held.clone();
        for held in &held {
            if known.insert(held.id.clone()) {
                let (operator, decide) = (operator.clone(), decision(held));
                deciding.push(async move { operator.decide(decide).await });
            }
            while deciding.len() >= DECISIONS {
                let decided = deciding.next().await.expect("one of them");
                assert!(is_taken(&decided), "{decided:?}");
            }
        }
        tokio::select! {
            Some(decided) = deciding.next() => {
                assert!(is_taken(&decided), "{decided:?}");
            }
            changed = snapshots.changed() => if changed.is_err() { return },
        }
    }
}

/// Tells whether a decision was applied, or came after the agent had ended its session.
fn is_taken(reply: &OperatorReply) -> bool {
    matches!(
        reply,
        OperatorReply::Decided(_)
            | OperatorReply::Refused(
                DecisionRefusal::NotHeld(_) | DecisionRefusal::AlreadySettled(_)
            )
    )
}

fn decision(held: &Held) -> DecisionRequest {
    let HeldSubject::Action(call) = &held.subject else {
        panic!("{held:?}");
    };
    let number = call.params["number"].as_u64().expect("a number");
    let ruling = if number % 2 == 0 {
        let answer = BTreeMap::from([("why".to_owned(), json!("it is even"))]);
        Ruling::Pass {
            answers: vec![answer],
        }
    } else {
        let reason = format!("{number} is odd");
        Ruling::Deny { reason }
    };
    DecisionRequest {
        gate: held.id.clone(),
        operator: "op-1".to_owned(),
        method: "console".to_owned(),
        request_hash: held.request_hash,
        atlas_hash: held.atlas_hash,
        justification: None,
        ruling,
    }
}

/// Totals of a load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) sessions: usize,
    pub(crate) events: usize,
    pub(crate) ran: usize,
    pub(crate) denied: usize,
    pub(crate) refused: usize,
    pub(crate) left: usize,
}

/// Compares the replies that agents received with the record: no event is missing or recorded twice.
pub(crate) fn check(replies: &[AgentReplies], record: &BTreeMap<SessionId, Vec<Event>>) -> Account {
    let mut account = Account {
        sessions: record.len(),
        events: record.values().map(Vec::len).sum(),
        ..Account::default()
    };
    assert_eq!(replies.len(), record.len(), "sessions");
    for one in replies {
        let seen = Seen::of(&record[&one.session]);
        assert_eq!(seen.ended, 1, "{}", one.session);
        assert_eq!(seen.outputs, 1, "{}", one.session);
        for (number, outcome) in &one.outcomes {
            let what = format!("{} {number} {outcome:?}", one.session);
            let count = |of: &BTreeMap<u64, usize>| of.get(number).copied().unwrap_or(0);
            let (asked, ran) = (count(&seen.attempted), count(&seen.completed));
            if one.left.contains(number) {
                account.left += 1;
                assert!((1..=2).contains(&asked), "{what}: asked {asked} times");
            } else {
                assert_eq!(asked, 1, "{what}: asked");
            }
            let blocked = count(&seen.blocked);
            match outcome {
                RequestOutcome::Ran => {
                    account.ran += 1;
                    assert_eq!((ran, blocked), (1, 0), "{what}");
                }
                RequestOutcome::Denied => {
                    account.denied += 1;
                    assert_eq!((ran, blocked), (0, 1), "{what}");
                }
                RequestOutcome::Refused => {
                    account.refused += 1;
                    assert_eq!(ran, 0, "{what}");
                    let refused = count(&seen.refused);
                    assert!((1..=asked).contains(&refused), "{what}: {refused} refusals");
                }
            }
        }
        let strange = seen
            .completed
            .keys()
            .find(|item| !one.outcomes.contains_key(item));
        assert_eq!(strange, None, "{}", one.session);
    }
    account
}

/// Recorded events of one session, by the number of the request.
#[derive(Default)]
struct Seen {
    attempted: BTreeMap<u64, usize>,
    completed: BTreeMap<u64, usize>,
    blocked: BTreeMap<u64, usize>,
    refused: BTreeMap<u64, usize>,
    outputs: usize,
    ended: usize,
}

impl Seen {
    fn of(events: &[Event]) -> Self {
        let mut seen = Self::default();
        for event in events {
            let text = |name: &str| event.payload.get(name).and_then(Value::as_str);
            let params = event.payload.get("action_params");
            let number = params.and_then(|item| item["number"].as_u64());
            let (into, number) = match event.event_type.as_str() {
                "action_attempted" => (&mut seen.attempted, number),
                // What an operator refuses is blocked by a checkpoint; this is what a policy denies.
                "action_blocked" if text("policy_id") == Some("never-wipe") => {
                    (&mut seen.blocked, number)
                }
                "action_completed" => {
                    let done = text("result_summary").and_then(|item| item.strip_prefix("done "));
                    (&mut seen.completed, done.and_then(|item| item.parse().ok()))
                }
                "checkpoint_blocked" if text("outcome") == Some("denied") => {
                    let odd = text("reason")
                        .and_then(|item| item.split(' ').find_map(|item| item.parse().ok()));
                    (&mut seen.refused, odd)
                }
                "output_produced" => {
                    seen.outputs += 1;
                    continue;
                }
                "session_ended" => {
                    seen.ended += 1;
                    continue;
                }
                _ => continue,
            };
            let number = number.unwrap_or_else(|| panic!("no number: {event:?}"));
            *into.entry(number).or_default() += 1;
        }
        seen
    }
}
