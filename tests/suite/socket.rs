//! Agents at the socket: a real one, with a real store behind it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cra_core::atlas::{Atlas, load_str};
use cra_core::base::clock::{Clock, ManualClock, SystemClock};
use cra_core::engine::command::{HeldOutcome, OperatorReply, Ruling};
use cra_core::gateway::protocol::call::CallError;
use cra_core::gateway::transport::client::GatewayClient;
use cra_core::gateway::transport::gateway_state::GatewayState;
use cra_core::gateway::transport::socket_lock::{SocketError, SocketLock};
use cra_core::gateway::transport::unix_server::UnixServer;
use cra_core::runtime::extension::Registry;
use cra_core::store::Store;
use cra_core::trace::note::Signer;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

use super::support::{Bench, acme, clock, decide, gateway_state, open_store_retrying, signer};

pub(crate) mod bypass;
mod documentation;
mod every_event;
mod features;
mod hostile;
pub(crate) mod numbers;
mod recorded_events;
mod reports;
mod resumed_conversations;
mod thread_limits;
mod threads;

/// A console with a socket and no connections.
pub(crate) struct TestConsole {
    pub(crate) bench: Bench,
    pub(crate) server: Option<UnixServer>,
    pub(crate) gateway: GatewayState,
    folder: TempDir,
}

impl TestConsole {
    pub(crate) async fn new() -> Self {
        Self::at(tempfile::tempdir().unwrap()).await
    }

    /// One under another Atlas than the example, in the real time of day.
    pub(crate) async fn with_atlas(atlas: &str) -> Self {
        let atlas = load_str("atlas.yaml", atlas).unwrap().atlas;
        let now = SystemClock.now();
        let clock = Arc::new(ManualClock::new(now));
        Self::with(tempfile::tempdir().unwrap(), vec![atlas], clock).await
    }

    /// One under several Atlases.
    pub(crate) async fn with_atlases(atlases: &[String]) -> Self {
        let atlases = atlases.iter();
        let atlases = atlases.map(|text| load_str("atlas.yaml", text).unwrap().atlas);
        let clock = Arc::new(ManualClock::new(SystemClock.now()));
        Self::with(tempfile::tempdir().unwrap(), atlases.collect(), clock).await
    }

    /// One under another Atlas, with extensions to ask.
    pub(crate) async fn with_atlas_and_extensions(atlas: &str, extensions: Registry) -> Self {
        let atlas = load_str("atlas.yaml", atlas).unwrap().atlas;
        let clock = Arc::new(ManualClock::new(SystemClock.now()));
        let folder = tempfile::tempdir().unwrap();
        Self::with_extensions(folder, vec![atlas], extensions, clock).await
    }

    async fn at(folder: TempDir) -> Self {
        Self::with(folder, acme(), clock()).await
    }

    async fn with(folder: TempDir, atlases: Vec<Atlas>, clock: Arc<ManualClock>) -> Self {
        Self::with_extensions(folder, atlases, Registry::default(), clock).await
    }

    async fn with_extensions(
        folder: TempDir,
        atlases: Vec<Atlas>,
        extensions: Registry,
        clock: Arc<ManualClock>,
    ) -> Self {
        let store: Arc<dyn Store> = Arc::new(open_store_retrying(folder.path()).unwrap());
        let bench = Bench::with_extensions(atlases, extensions, Arc::clone(&store), clock).await;
        write_key_file(folder.path(), &signer(store.as_ref()).await);
        let place = SocketLock::acquire(&folder.path().join("run/console.sock")).unwrap();
        let gateway = gateway_state(&bench, store.as_ref()).await;
        let server = UnixServer::start(place, gateway.clone()).unwrap();
        Self {
            gateway,
            bench,
            server: Some(server),
            folder,
        }
    }

    /// Restarts the console.
    async fn restart(self) -> Self {
        drop(self.server);
        self.bench.runtime.stop().await;
        Self::at(self.folder).await
    }

    /// The folder of a console that was stopped.
    pub(crate) async fn close(self) -> TempDir {
        drop(self.server);
        self.bench.runtime.stop().await;
        self.folder
    }

    /// The public key that proves its answers.
    pub(crate) fn key(&self) -> String {
        self.gateway.verifier().to_string()
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Path of the socket, also after the server stopped.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("run/console.sock")
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.server.as_ref().unwrap().path().to_owned()
    }

    pub(crate) async fn agent(&self) -> Agent {
        let speaker = GatewayClient::connect(&self.socket()).await.unwrap();
        Agent(speaker)
    }

    /// A raw connection without a client.
    pub(crate) async fn connect_raw(&self) -> BufReader<UnixStream> {
        BufReader::new(UnixStream::connect(self.socket()).await.unwrap())
    }

    /// An operator passes the one request that is held.
    pub(crate) async fn pass(&self) {
        let snapshot = self
            .bench
            .wait_until(|snapshot| snapshot.held.len() == 1)
            .await;
        let reply = self.bench.pass(&snapshot.held[0]).await;
        assert!(matches!(reply, OperatorReply::Decided(_)), "{reply:?}");
    }

    pub(crate) async fn deny(&self, reason: &str) {
        let snapshot = self
            .bench
            .wait_until(|snapshot| snapshot.held.len() == 1)
            .await;
        let reason = reason.to_owned();
        let ruling = Ruling::Deny { reason };
        let decided = decide(&snapshot.held[0], ruling);
        let reply = self.bench.runtime.operator_handle().decide(decided).await;
        assert!(matches!(reply, OperatorReply::Decided(_)), "{reply:?}");
    }
}

/// Keeps a key where the console keeps it.
fn write_key_file(folder: &Path, signer: &Signer) {
    let file = folder.join("cra.key");
    fs::write(&file, format!("{}\n", signer.secret())).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
}

/// An agent at the socket.
pub(crate) struct Agent(GatewayClient);

impl Agent {
    pub(crate) async fn call(&mut self, method: &str, params: Value) -> Result<Value, CallError> {
        self.0.call(method, &params).await
    }

    pub(crate) async fn call_ok(&mut self, method: &str, params: Value) -> Value {
        self.call(method, params).await.unwrap()
    }

    /// Calls a method that must fail, and returns the error message.
    pub(crate) async fn call_err(&mut self, method: &str, params: Value) -> String {
        match self.call(method, params).await {
            Err(CallError::Fault(fault)) => fault.message,
            other => panic!("{other:?}"),
        }
    }

    async fn begin(&mut self, session: &str) -> Value {
        let api_key = format!("sk-acme-{session}");
        let start = json!({"session": session, "agent": "bot", "api_key": api_key});
        self.call_ok("session.start", start).await
    }
}

fn delete(session: &str) -> Value {
    json!({"session": session, "action": "ticket.delete", "params": {"ticket_ids": ["T-1"], "cascade": false}})
}

#[tokio::test]
async fn action_is_answered_after_an_operator_passed_every_gate() {
    let console = TestConsole::new().await;
    let mut agent = console.agent().await;
    let started = agent.begin("s-1").await;
    assert_eq!(started["held"], json!(["c-1"]));
    console.pass().await;
    let (allowed, ()) = tokio::join!(agent.call_ok("action.request", delete("s-1")), async {
        let snapshot = console
            .bench
            .wait_until(|snapshot| snapshot.held.len() == 1)
            .await;
        assert_eq!(snapshot.held[0].id.as_str(), "c-2");
        console.pass().await;
    });
    let completed = json!({"session": "s-1", "execution": allowed["execution"], "result": "ok"});
    assert_eq!(
        agent.call_ok("action.completed", completed).await,
        json!({})
    );
    assert_eq!(
        agent
            .call_ok("session.end", json!({"session": "s-1"}))
            .await,
        json!({})
    );
}

#[tokio::test]
async fn denial_is_returned_as_an_error_with_the_reason_and_the_gate() {
    let console = TestConsole::new().await;
    let mut agent = console.agent().await;
    agent.begin("s-1").await;
    console.pass().await;
    let (refused, ()) = tokio::join!(
        agent.call("action.request", delete("s-1")),
        console.deny("not without a ticket")
    );
    let Err(CallError::Fault(fault)) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(fault.code, -32001);
    assert!(
        fault.message.contains("not without a ticket"),
        "{}",
        fault.message
    );
    let data = fault.data.unwrap();
    assert_eq!(
        (&data["code"], &data["gate"]),
        (&json!("refused"), &json!("c-2"))
    );
}

#[tokio::test]
async fn unanswered_request_is_denied_at_the_callers_deadline() {
    let console = TestConsole::new().await;
    let mut agent = console.agent().await;
    agent.begin("s-1").await;
    console.pass().await;
    let mut request = delete("s-1");
    request["deadline"] = json!("2026-01-01T00:00:20.000000Z");
    let (reply, ()) = tokio::join!(agent.call_err("action.request", request), async {
        console
            .bench
            .wait_until(|snapshot| snapshot.held.len() == 1)
            .await;
        console.bench.clock.advance(Duration::from_secs(21));
    });
    assert!(reply.contains("no answer within 20 s"), "{reply}");
}

#[tokio::test]
async fn agent_that_disconnects_while_held_gets_a_permit_for_that_request_only() {
    let console = TestConsole::new().await;
    let mut agent = console.agent().await;
    let key = agent.begin("s-1").await["key"].clone();
    console.pass().await;
    {
        let leaving = agent.call("action.request", delete("s-1"));
        tokio::select! {
            reply = leaving => panic!("{reply:?}"),
            _ = console.bench.wait_until(|snapshot| snapshot.held.len() == 1) => {}
        }
    }
    drop(agent);
    let mut connections = console.server.as_ref().unwrap().connections();
    connections.wait_for(|there| *there == 0).await.unwrap();
    console.pass().await;
    console
        .bench
        .wait_until(|snapshot| snapshot.held.is_empty())
        .await;
    let mut back = console.agent().await;
    let start = json!({"session": "s-1", "agent": "bot", "key": key, "api_key": "sk-acme-1"});
    back.call_ok("session.start", start).await;
    let mut other = delete("s-1");
    other["params"]["ticket_ids"] = json!(["T-2"]);
    {
        let asking = back.call("action.request", other);
        tokio::select! {
            reply = asking => panic!("{reply:?}"),
            _ = console.bench.wait_until(|snapshot| snapshot.held.len() == 1) => {}
        }
    }
    let mut back = console.agent().await;
    let mut same = delete("s-1");
    same["key"] = key;
    let allowed = back.call_ok("action.request", same.clone()).await;
    assert!(allowed["execution"].is_string(), "{allowed}");
    // Once, and not again.
    {
        let asking = back.call("action.request", same);
        tokio::select! {
            reply = asking => panic!("{reply:?}"),
            _ = console.bench.wait_until(|snapshot| snapshot.held.len() == 2) => {}
        }
    }
}

#[tokio::test]
async fn calls_without_the_session_key_are_refused_also_after_a_restart() {
    let console = TestConsole::new().await;
    let mut owner = console.agent().await;
    let key = owner.begin("s-1").await["key"].clone();
    console.pass().await;
    let read = json!({"session": "s-1", "action": "ticket.get", "params": {"ticket_id": "T-1"}});
    owner.call_ok("action.request", read.clone()).await;

    let stranger = |params: &Value, key: Option<&Value>| {
        let mut params = params.clone();
        if let Some(key) = key {
            params["key"] = key.clone();
        }
        params
    };
    let wrong = json!("0123456789abcdef");
    let start = json!({"session": "s-1", "agent": "bot", "api_key": "sk-acme-1"});
    let console = console.restart().await;
    for (method, params) in [
        ("action.request", &read),
        ("session.end", &json!({"session": "s-1"})),
        ("input", &json!({"session": "s-1", "text": "hello"})),
        (
            "turn",
            &json!({"session": "s-1", "turn": {"message_id": "m-1", "message": "hello"}}),
        ),
    ] {
        let mut other = console.agent().await;
        let reply = other.call_err(method, stranger(params, None)).await;
        assert_eq!(
            reply, "session `s-1` was not started on this connection",
            "{method}"
        );
        let reply = other.call_err(method, stranger(params, Some(&wrong))).await;
        assert_eq!(reply, "session `s-1` belongs to another agent", "{method}");
    }
    let mut other = console.agent().await;
    for key in [None, Some(&wrong)] {
        let reply = other.call_err("session.start", stranger(&start, key)).await;
        assert_eq!(reply, "session `s-1` belongs to another agent");
    }
    let mut back = console.agent().await;
    let reply = back
        .call_ok("action.request", stranger(&read, Some(&key)))
        .await;
    assert!(reply["execution"].is_string(), "{reply}");
}

#[tokio::test]
async fn concurrent_agents_each_receive_their_own_answer() {
    let console = TestConsole::new().await;
    let socket = console.socket();
    let agents = (0..100).map(|number| {
        let socket = socket.clone();
        tokio::spawn(async move {
            let mut agent = Agent(GatewayClient::connect(&socket).await.unwrap());
            let session = format!("s-{number}");
            assert_eq!(agent.begin(&session).await["session"], json!(session));
            let request = json!({"session": session, "actions": [{"action": "ticket.get"}]});
            let reply = agent.call_ok("resolve", request).await;
            assert_eq!(reply["session"], json!(session), "{reply}");
        })
    });
    for agent in agents.collect::<Vec<_>>() {
        agent.await.unwrap();
    }
    assert_eq!(
        console
            .bench
            .wait_until(|snapshot| snapshot.held.len() == 100)
            .await
            .sessions
            .len(),
        100
    );
}

#[tokio::test]
async fn requests_of_one_connection_wait_concurrently() {
    let console = TestConsole::new().await;
    let mut stream = console.connect_raw().await;
    let say = |id: u64, method: &str, params: Value| {
        let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        format!("{line}\n")
    };
    let start = json!({"session": "s-1", "agent": "bot", "api_key": "sk-acme-1"});
    stream
        .write_all(say(1, "session.start", start).as_bytes())
        .await
        .unwrap();
    let mut line = String::new();
    stream.read_line(&mut line).await.unwrap();
    // Held behind the session's start; what comes after it is heard all the same.
    stream
        .write_all(say(2, "action.request", delete("s-1")).as_bytes())
        .await
        .unwrap();
    stream
        .write_all(say(3, "no.such", json!({})).as_bytes())
        .await
        .unwrap();
    line.clear();
    stream.read_line(&mut line).await.unwrap();
    let reply: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(reply["id"], json!(3));
}

#[tokio::test]
async fn stopping_console_approves_no_waiting_request() {
    let mut console = TestConsole::new().await;
    let mut agent = console.agent().await;
    agent.begin("s-1").await;
    let (reply, ()) = tokio::join!(agent.call("action.request", delete("s-1")), async {
        console
            .bench
            .wait_until(|snapshot| snapshot.held.len() == 1)
            .await;
        drop(console.server.take());
    });
    assert!(matches!(reply, Err(CallError::Disconnected)), "{reply:?}");
    let snapshot = console.bench.snapshot();
    assert!(
        snapshot
            .decided
            .iter()
            .all(|decided| decided.outcome != HeldOutcome::Passed)
    );
}

#[test]
fn socket_path_is_locked_by_one_console_in_a_private_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run/console.sock");
    let first = SocketLock::acquire(&path).unwrap();
    let reply = SocketLock::acquire(&path).unwrap_err();
    assert!(matches!(reply, SocketError::InUse(_)), "{reply}");
    drop(first);
    // What a console left that was killed.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let second = SocketLock::acquire(&path).unwrap();
    assert!(!path.exists());
    drop(second);
    let _alive = std::os::unix::net::UnixListener::bind(&path).unwrap();
    assert!(matches!(
        SocketLock::acquire(&path),
        Err(SocketError::InUse(_))
    ));

    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "a file").unwrap();
    assert!(matches!(
        SocketLock::acquire(&path),
        Err(SocketError::NotASocket(_))
    ));
    assert_eq!(std::fs::read(&path).unwrap(), b"a file");

    let open = folder.path().join("open");
    std::fs::create_dir(&open).unwrap();
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o755)).unwrap();
    let reply = SocketLock::acquire(&open.join("console.sock")).unwrap_err();
    assert!(
        matches!(reply, SocketError::SharedFolder { mode: 0o755, .. }),
        "{reply}"
    );

    let long = folder.path().join("x".repeat(120)).join("console.sock");
    assert!(matches!(
        SocketLock::acquire(&long),
        Err(SocketError::TooLong(_))
    ));
}

#[tokio::test]
async fn socket_and_its_folder_are_accessible_to_the_owner_only() {
    let console = TestConsole::new().await;
    let mode =
        |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let socket = console.socket();
    assert_eq!(mode(&socket), 0o600);
    assert_eq!(mode(socket.parent().unwrap()), 0o700);
}

/// Refused attempts to use a session, as recorded there.
pub(crate) async fn refused_attempts(console: &TestConsole, session: &str) -> Vec<String> {
    let session = session.parse().unwrap();
    let mut records = console.bench.runtime.record_stream();
    let events = records.next_events(&session, 0, 1000).await.unwrap();
    let refused_attempts = events
        .iter()
        .filter(|event| event.payload.get("error_type") == Some(&json!("session_takeover")));
    refused_attempts
        .map(|event| event.payload["message"].as_str().unwrap().to_owned())
        .collect()
}

// covers B16
#[tokio::test]
async fn call_for_a_session_without_its_key_is_recorded_there_with_its_process() {
    let console = TestConsole::new().await;
    let mut owner = console.agent().await;
    owner.begin("s-1").await;
    assert_eq!(refused_attempts(&console, "s-1").await, [""; 0]);
    let mut other = console.agent().await;
    let end = json!({"session": "s-1"});
    other.call_err("session.end", end.clone()).await;
    let pid = std::process::id();
    let reply = refused_attempts(&console, "s-1").await;
    assert_eq!(reply.len(), 1);
    assert!(
        reply[0].starts_with("a caller at the socket (uid "),
        "{reply:?}"
    );
    let words = format!(", pid {pid}) named this session without its key, and was refused");
    assert!(reply[0].ends_with(&words), "{reply:?}");
    // Repeated attempts of any kind are recorded once a minute.
    for _ in 0..50 {
        let mut wrong = end.clone();
        wrong["key"] = json!("0123456789abcdef");
        other.call_err("session.end", wrong).await;
        let start = json!({"session": "s-1", "agent": "bot", "api_key": "sk-acme-1"});
        other.call_err("session.start", start).await;
    }
    assert_eq!(refused_attempts(&console, "s-1").await.len(), 1);
    console.bench.clock.advance(Duration::from_mins(1));
    other.call_err("session.end", end).await;
    let reply = refused_attempts(&console, "s-1").await;
    assert_eq!(reply.len(), 2);
    assert!(
        reply[1].ends_with(" (100 more since the last record)"),
        "{reply:?}"
    );
}

/// Reads everything until the other side closes.
pub(crate) async fn rest(stream: &mut BufReader<UnixStream>) -> String {
    let mut text = String::new();
    let read = stream.read_to_string(&mut text);
    let read = tokio::time::timeout(Duration::from_secs(20), read).await;
    // A connection that is closed with words unread is reset, and was closed all the same.
    let _ = read.expect("the connection was never closed");
    text
}

const ASKS_THE_AGENT: &str = r#"
atlas_version: "1.0"
atlas_id: t
name: T
version: "1"
actions: [{action_id: a.run, name: A, risk_tier: low}]
checkpoints:
  - checkpoint_id: why
    trigger: {type: action_pre, patterns: [a.run]}
    mode: blocking
    respondent: agent
    questions: [{question_id: q, question: "Why?", response_type: text, validation: {min_length: 5}}]
"#;

#[tokio::test]
async fn question_to_the_agent_is_not_an_approval() {
    let console = TestConsole::with_atlas(ASKS_THE_AGENT).await;
    let mut agent = console.agent().await;
    agent.begin("s-1").await;
    let request = json!({"session": "s-1", "action": "a.run"});
    let reply = agent.call("action.request", request).await;
    let Err(CallError::Fault(fault)) = reply else {
        panic!("{reply:?}");
    };
    assert_eq!(fault.code, -32002);
    assert_eq!(fault.data.unwrap()["asked"]["gate"], json!("c-1"));
    let mut answer = json!({"session": "s-1", "gate": "c-1", "answers": {"why": {"q": "no"}}});
    let reply = agent.call("checkpoint.answer", answer.clone()).await;
    let Err(CallError::Fault(fault)) = reply else {
        panic!("{reply:?}");
    };
    assert_eq!(fault.code, -32003);
    assert_eq!(fault.data.unwrap()["problems"][0]["checkpoint"], "why");
    answer["answers"]["why"]["q"] = json!("the build needs it");
    let allowed = agent.call_ok("checkpoint.answer", answer).await;
    assert!(allowed["execution"].is_string(), "{allowed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn replaced_socket_file_is_detected() {
    let console = TestConsole::new().await;
    let bound = console.server.as_ref().unwrap().bound();
    assert_eq!(bound.find_problem(), None);
    std::fs::remove_file(console.path()).unwrap();
    let gone = bound.find_problem().unwrap();
    assert!(gone.contains("is gone"), "{gone}");
    let _impostor = std::os::unix::net::UnixListener::bind(console.path()).unwrap();
    let taken = bound.find_problem().unwrap();
    assert!(taken.contains("ANOTHER PROCESS listens"), "{taken}");
}

#[tokio::test]
async fn tool_use_requested_twice_is_one_run() {
    let console = TestConsole::new().await;
    let mut stream = console.connect_raw().await;
    let start = json!({"session": "s-1", "agent": "bot", "api_key": "sk-acme-1"});
    let mut request = delete("s-1");
    request["reference"] = json!("call-1");
    let say = |id: u64, method: &str, params: &Value| {
        let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        format!("{line}\n")
    };
    let mut heard = async |lines: &str| {
        stream.write_all(lines.as_bytes()).await.unwrap();
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        serde_json::from_str::<Value>(&line).unwrap()
    };
    heard(&say(1, "session.start", &start)).await;
    let pending = [2, 3]
        .map(|id| say(id, "action.request", &request))
        .concat();
    let last = heard(&format!("{pending}{}", say(4, "no.such", &json!({})))).await;
    assert_eq!(last["id"], 4, "by now both have asked");
    console.pass().await;
    console.pass().await;
    let both = [heard("").await, heard("").await];
    assert!(both[0]["result"]["execution"].is_string(), "{both:?}");
    assert_eq!(both[0]["result"], both[1]["result"]);
    let snapshot = console
        .bench
        .wait_until(|snapshot| snapshot.held.is_empty())
        .await;
    assert_eq!(snapshot.sessions.first().unwrap().actions, 1);
}

#[tokio::test]
async fn identical_calls_without_a_reference_need_two_decisions() {
    let console = TestConsole::new().await;
    let mut first = console.agent().await;
    let key = first.begin("s-1").await["key"].clone();
    console.pass().await;
    let mut second = console.agent().await;
    let mut request = delete("s-1");
    request["key"] = key;
    let decided = async {
        let snapshot = console
            .bench
            .wait_until(|snapshot| snapshot.held.len() == 2)
            .await;
        console.bench.pass(&snapshot.held[0]).await;
        console.deny("once is enough").await;
    };
    let (one, two, ()) = tokio::join!(
        first.call("action.request", request.clone()),
        second.call("action.request", request.clone()),
        decided
    );
    assert_eq!(
        [one.is_ok(), two.is_ok()]
            .iter()
            .filter(|item| **item)
            .count(),
        1
    );
    let snapshot = console
        .bench
        .wait_until(|snapshot| snapshot.held.is_empty())
        .await;
    assert_eq!(snapshot.sessions.first().unwrap().actions, 1);
}

#[tokio::test]
async fn call_on_a_new_connection_joins_the_request_of_a_lost_connection() {
    let console = TestConsole::new().await;
    let mut first = console.agent().await;
    let key = first.begin("s-1").await["key"].clone();
    console.pass().await;
    let mut request = delete("s-1");
    request["key"] = key;
    {
        let leaving = first.call("action.request", request.clone());
        tokio::select! {
            reply = leaving => panic!("{reply:?}"),
            _ = console.bench.wait_until(|snapshot| snapshot.held.len() == 1) => {}
        }
    }
    drop(first);
    let mut connections = console.server.as_ref().unwrap().connections();
    connections.wait_for(|there| *there == 0).await.unwrap();
    let mut second = console.agent().await;
    let joined = async {
        console
            .bench
            .wait_until(|snapshot| snapshot.held.iter().any(|held| held.joined == 1))
            .await;
        console.pass().await;
    };
    let (reply, ()) = tokio::join!(second.call("action.request", request), joined);
    assert!(reply.unwrap()["execution"].is_string());
}

fn waiting_input(deadline: &str) -> Value {
    json!({"session": "s-1", "text": "hello", "waits_for_start": true, "deadline": deadline})
}

#[tokio::test]
async fn input_that_waits_for_the_start_gate_is_answered_after_the_pass() {
    let console = TestConsole::new().await;
    let mut agent = console.agent().await;
    agent.begin("s-1").await;
    let input = waiting_input("2026-01-01T00:01:00.000000Z");
    let (accepted, ()) = tokio::join!(agent.call_ok("input", input), console.pass());
    assert!(accepted.get("held").is_none(), "{accepted}");
}

#[tokio::test]
async fn input_at_an_unanswered_start_gate_is_denied_with_its_reason() {
    let console = TestConsole::new().await;
    let mut agent = console.agent().await;
    agent.begin("s-1").await;
    let input = waiting_input("2026-01-01T00:00:20.000000Z");
    let limited = "2026-01-01T00:00:20.000000Z".parse().unwrap();
    let (reply, ()) = tokio::join!(agent.call_err("input", input), async {
        console
            .bench
            .wait_until(|snapshot| snapshot.held.iter().any(|held| held.deadline == limited))
            .await;
        console.bench.clock.advance(Duration::from_secs(21));
    });
    assert!(
        reply.contains("no operator passed the start gate"),
        "{reply}"
    );
}
