//! Agents at the socket: a real one, with a real store behind it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cra_core::atlas::{Atlas, load_str};
use cra_core::base::clock::{Clock, ManualClock, SystemClock};
use cra_core::engine::command::{HeldOutcome, Reply, Ruling};
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

use super::support::{Bench, acme, clock, decide, hall, retry_or_refuse, signer};

pub(crate) mod bypass;
mod documented;
mod every_event;
mod features;
mod grounds;
mod hostile;
pub(crate) mod numbers;
mod reports;
mod resumed;
mod thread_limits;
mod threads;

/// A console with a socket, and nobody at it yet.
pub(crate) struct House {
    pub(crate) bench: Bench,
    pub(crate) door: Option<UnixServer>,
    pub(crate) hall: GatewayState,
    folder: TempDir,
}

impl House {
    pub(crate) async fn new() -> Self {
        Self::at(tempfile::tempdir().unwrap()).await
    }

    /// One under another Atlas than the example, in the real time of day.
    pub(crate) async fn under(atlas: &str) -> Self {
        let atlas = load_str("atlas.yaml", atlas).unwrap().atlas;
        let now = SystemClock.now();
        let clock = Arc::new(ManualClock::new(now));
        Self::with(tempfile::tempdir().unwrap(), vec![atlas], clock).await
    }

    /// One under several Atlases.
    pub(crate) async fn under_all(atlases: &[String]) -> Self {
        let atlases = atlases.iter();
        let atlases = atlases.map(|text| load_str("atlas.yaml", text).unwrap().atlas);
        let clock = Arc::new(ManualClock::new(SystemClock.now()));
        Self::with(tempfile::tempdir().unwrap(), atlases.collect(), clock).await
    }

    /// One under another Atlas, with extensions to ask.
    pub(crate) async fn extended(atlas: &str, extensions: Registry) -> Self {
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
        let store: Arc<dyn Store> = Arc::new(retry_or_refuse(folder.path()).unwrap());
        let bench = Bench::with(atlases, extensions, Arc::clone(&store), clock).await;
        keep_key(folder.path(), &signer(store.as_ref()).await);
        let place = SocketLock::acquire(&folder.path().join("run/console.sock")).unwrap();
        let hall = hall(&bench, store.as_ref()).await;
        let door = UnixServer::start(place, hall.clone()).unwrap();
        Self {
            hall,
            bench,
            door: Some(door),
            folder,
        }
    }

    /// The same console after a restart.
    async fn again(self) -> Self {
        drop(self.door);
        self.bench.runtime.stop().await;
        Self::at(self.folder).await
    }

    /// The folder of a console that was stopped.
    pub(crate) async fn close(self) -> TempDir {
        drop(self.door);
        self.bench.runtime.stop().await;
        self.folder
    }

    /// The public key that proves its answers.
    pub(crate) fn key(&self) -> String {
        self.hall.verifier().to_string()
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Where the socket is, or was.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("run/console.sock")
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.door.as_ref().unwrap().path().to_owned()
    }

    pub(crate) async fn agent(&self) -> Agent {
        let speaker = GatewayClient::connect(&self.socket()).await.unwrap();
        Agent(speaker)
    }

    /// A connection that says whatever it likes.
    pub(crate) async fn raw(&self) -> BufReader<UnixStream> {
        BufReader::new(UnixStream::connect(self.socket()).await.unwrap())
    }

    /// An operator passes the one request that is held.
    pub(crate) async fn pass(&self) {
        let picture = self.bench.until(|it| it.held.len() == 1).await;
        let reply = self.bench.pass(&picture.held[0]).await;
        assert!(matches!(reply, Reply::Decided(_)), "{reply:?}");
    }

    pub(crate) async fn deny(&self, reason: &str) {
        let picture = self.bench.until(|it| it.held.len() == 1).await;
        let reason = reason.to_owned();
        let ruling = Ruling::Deny { reason };
        let decided = decide(&picture.held[0], ruling);
        let reply = self.bench.runtime.operator_handle().decide(decided).await;
        assert!(matches!(reply, Reply::Decided(_)), "{reply:?}");
    }
}

/// Keeps a key where the console keeps it.
fn keep_key(folder: &Path, signer: &Signer) {
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

    pub(crate) async fn says(&mut self, method: &str, params: Value) -> Value {
        self.call(method, params).await.unwrap()
    }

    /// What it is told that is no result.
    pub(crate) async fn refused(&mut self, method: &str, params: Value) -> String {
        match self.call(method, params).await {
            Err(CallError::Fault(fault)) => fault.message,
            other => panic!("{other:?}"),
        }
    }

    async fn begin(&mut self, session: &str) -> Value {
        let api_key = format!("sk-acme-{session}");
        let start = json!({"session": session, "agent": "bot", "api_key": api_key});
        self.says("session.start", start).await
    }
}

fn delete(session: &str) -> Value {
    json!({"session": session, "action": "ticket.delete", "params": {"ticket_ids": ["T-1"], "cascade": false}})
}

#[tokio::test]
async fn an_action_is_answered_when_an_operator_has_passed_every_gate() {
    let house = House::new().await;
    let mut agent = house.agent().await;
    let started = agent.begin("s-1").await;
    assert_eq!(started["held"], json!(["c-1"]));
    house.pass().await;
    let (allowed, ()) = tokio::join!(agent.says("action.request", delete("s-1")), async {
        let picture = house.bench.until(|it| it.held.len() == 1).await;
        assert_eq!(picture.held[0].id.as_str(), "c-2");
        house.pass().await;
    });
    let completed = json!({"session": "s-1", "execution": allowed["execution"], "result": "ok"});
    assert_eq!(agent.says("action.completed", completed).await, json!({}));
    assert_eq!(
        agent.says("session.end", json!({"session": "s-1"})).await,
        json!({})
    );
}

#[tokio::test]
async fn a_refusal_comes_back_as_an_error_with_the_reason_and_the_gate() {
    let house = House::new().await;
    let mut agent = house.agent().await;
    agent.begin("s-1").await;
    house.pass().await;
    let (refused, ()) = tokio::join!(
        agent.call("action.request", delete("s-1")),
        house.deny("not without a ticket")
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
async fn silence_until_the_askers_own_deadline_is_a_denial() {
    let house = House::new().await;
    let mut agent = house.agent().await;
    agent.begin("s-1").await;
    house.pass().await;
    let mut request = delete("s-1");
    request["deadline"] = json!("2026-01-01T00:00:20.000000Z");
    let (told, ()) = tokio::join!(agent.refused("action.request", request), async {
        house.bench.until(|it| it.held.len() == 1).await;
        house.bench.clock.advance(Duration::from_secs(21));
    });
    assert!(told.contains("no answer within 20 s"), "{told}");
}

#[tokio::test]
async fn who_leaves_while_held_gets_a_permit_for_the_same_request_and_no_other() {
    let house = House::new().await;
    let mut agent = house.agent().await;
    let key = agent.begin("s-1").await["key"].clone();
    house.pass().await;
    {
        let leaving = agent.call("action.request", delete("s-1"));
        tokio::select! {
            told = leaving => panic!("{told:?}"),
            _ = house.bench.until(|it| it.held.len() == 1) => {}
        }
    }
    drop(agent);
    let mut visitors = house.door.as_ref().unwrap().connections();
    visitors.wait_for(|there| *there == 0).await.unwrap();
    house.pass().await;
    house.bench.until(|it| it.held.is_empty()).await;
    let mut back = house.agent().await;
    let start = json!({"session": "s-1", "agent": "bot", "key": key, "api_key": "sk-acme-1"});
    back.says("session.start", start).await;
    let mut other = delete("s-1");
    other["params"]["ticket_ids"] = json!(["T-2"]);
    {
        let asking = back.call("action.request", other);
        tokio::select! {
            told = asking => panic!("{told:?}"),
            _ = house.bench.until(|it| it.held.len() == 1) => {}
        }
    }
    let mut back = house.agent().await;
    let mut same = delete("s-1");
    same["key"] = key;
    let allowed = back.says("action.request", same.clone()).await;
    assert!(allowed["execution"].is_string(), "{allowed}");
    // Once, and not again.
    {
        let asking = back.call("action.request", same);
        tokio::select! {
            told = asking => panic!("{told:?}"),
            _ = house.bench.until(|it| it.held.len() == 2) => {}
        }
    }
}

#[tokio::test]
async fn nobody_speaks_for_a_session_without_its_key_also_after_a_restart() {
    let house = House::new().await;
    let mut owner = house.agent().await;
    let key = owner.begin("s-1").await["key"].clone();
    house.pass().await;
    let read = json!({"session": "s-1", "action": "ticket.get", "params": {"ticket_id": "T-1"}});
    owner.says("action.request", read.clone()).await;

    let stranger = |params: &Value, key: Option<&Value>| {
        let mut params = params.clone();
        if let Some(key) = key {
            params["key"] = key.clone();
        }
        params
    };
    let wrong = json!("0123456789abcdef");
    let start = json!({"session": "s-1", "agent": "bot", "api_key": "sk-acme-1"});
    let house = house.again().await;
    for (method, params) in [
        ("action.request", &read),
        ("session.end", &json!({"session": "s-1"})),
        ("input", &json!({"session": "s-1", "text": "hello"})),
        (
            "turn",
            &json!({"session": "s-1", "turn": {"message_id": "m-1", "message": "hello"}}),
        ),
    ] {
        let mut other = house.agent().await;
        let told = other.refused(method, stranger(params, None)).await;
        assert_eq!(
            told, "session `s-1` was not started on this connection",
            "{method}"
        );
        let told = other.refused(method, stranger(params, Some(&wrong))).await;
        assert_eq!(told, "session `s-1` belongs to another agent", "{method}");
    }
    let mut other = house.agent().await;
    for key in [None, Some(&wrong)] {
        let told = other.refused("session.start", stranger(&start, key)).await;
        assert_eq!(told, "session `s-1` belongs to another agent");
    }
    let mut back = house.agent().await;
    let told = back
        .says("action.request", stranger(&read, Some(&key)))
        .await;
    assert!(told["execution"].is_string(), "{told}");
}

#[tokio::test]
async fn many_agents_ask_at_once_and_each_hears_its_own_answer() {
    let house = House::new().await;
    let socket = house.socket();
    let agents = (0..100).map(|number| {
        let socket = socket.clone();
        tokio::spawn(async move {
            let mut agent = Agent(GatewayClient::connect(&socket).await.unwrap());
            let session = format!("s-{number}");
            assert_eq!(agent.begin(&session).await["session"], json!(session));
            let asked = json!({"session": session, "actions": [{"action": "ticket.get"}]});
            let told = agent.says("resolve", asked).await;
            assert_eq!(told["session"], json!(session), "{told}");
        })
    });
    for agent in agents.collect::<Vec<_>>() {
        agent.await.unwrap();
    }
    assert_eq!(
        house
            .bench
            .until(|it| it.held.len() == 100)
            .await
            .sessions
            .len(),
        100
    );
}

#[tokio::test]
async fn several_requests_of_one_connection_wait_side_by_side() {
    let house = House::new().await;
    let mut stream = house.raw().await;
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
    let told: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(told["id"], json!(3));
}

#[tokio::test]
async fn a_console_that_stops_leaves_nobody_with_a_yes() {
    let mut house = House::new().await;
    let mut agent = house.agent().await;
    agent.begin("s-1").await;
    let (told, ()) = tokio::join!(agent.call("action.request", delete("s-1")), async {
        house.bench.until(|it| it.held.len() == 1).await;
        drop(house.door.take());
    });
    assert!(matches!(told, Err(CallError::Disconnected)), "{told:?}");
    let picture = house.bench.snapshot();
    assert!(
        picture
            .decided
            .iter()
            .all(|it| it.outcome != HeldOutcome::Passed)
    );
}

#[test]
fn a_place_is_ours_alone_or_nobody_listens_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run/console.sock");
    let first = SocketLock::acquire(&path).unwrap();
    let told = SocketLock::acquire(&path).unwrap_err();
    assert!(matches!(told, SocketError::InUse(_)), "{told}");
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
    let told = SocketLock::acquire(&open.join("console.sock")).unwrap_err();
    assert!(
        matches!(told, SocketError::SharedFolder { mode: 0o755, .. }),
        "{told}"
    );

    let long = folder.path().join("x".repeat(120)).join("console.sock");
    assert!(matches!(
        SocketLock::acquire(&long),
        Err(SocketError::TooLong(_))
    ));
}

#[tokio::test]
async fn the_socket_and_its_folder_are_for_us_alone() {
    let house = House::new().await;
    let mode =
        |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let socket = house.socket();
    assert_eq!(mode(&socket), 0o600);
    assert_eq!(mode(socket.parent().unwrap()), 0o700);
}

/// What was tried with a session, as it is recorded there.
pub(crate) async fn tried(house: &House, session: &str) -> Vec<String> {
    let session = session.parse().unwrap();
    let mut records = house.bench.runtime.record_stream();
    let events = records.next_events(&session, 0, 1000).await.unwrap();
    let tried = events
        .iter()
        .filter(|it| it.payload.get("error_type") == Some(&json!("session_takeover")));
    tried
        .map(|it| it.payload["message"].as_str().unwrap().to_owned())
        .collect()
}

// covers B16
#[tokio::test]
async fn who_names_a_session_that_is_not_theirs_is_on_record_there_by_process() {
    let house = House::new().await;
    let mut owner = house.agent().await;
    owner.begin("s-1").await;
    assert_eq!(tried(&house, "s-1").await, [""; 0]);
    let mut other = house.agent().await;
    let end = json!({"session": "s-1"});
    other.refused("session.end", end.clone()).await;
    let pid = std::process::id();
    let told = tried(&house, "s-1").await;
    assert_eq!(told.len(), 1);
    assert!(
        told[0].starts_with("somebody at the socket (uid "),
        "{told:?}"
    );
    let words = format!(", pid {pid}) named this session without its key, and was refused");
    assert!(told[0].ends_with(&words), "{told:?}");
    // However often, and however it is tried: one a minute.
    for _ in 0..50 {
        let mut wrong = end.clone();
        wrong["key"] = json!("0123456789abcdef");
        other.refused("session.end", wrong).await;
        let start = json!({"session": "s-1", "agent": "bot", "api_key": "sk-acme-1"});
        other.refused("session.start", start).await;
    }
    assert_eq!(tried(&house, "s-1").await.len(), 1);
    house.bench.clock.advance(Duration::from_mins(1));
    other.refused("session.end", end).await;
    let told = tried(&house, "s-1").await;
    assert_eq!(told.len(), 2);
    assert!(told[1].contains("; 100 more like it"), "{told:?}");
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
async fn what_the_agent_has_to_answer_first_is_no_yes() {
    let house = House::under(ASKS_THE_AGENT).await;
    let mut agent = house.agent().await;
    agent.begin("s-1").await;
    let request = json!({"session": "s-1", "action": "a.run"});
    let told = agent.call("action.request", request).await;
    let Err(CallError::Fault(fault)) = told else {
        panic!("{told:?}");
    };
    assert_eq!(fault.code, -32002);
    assert_eq!(fault.data.unwrap()["asked"]["gate"], json!("c-1"));
    let mut answer = json!({"session": "s-1", "gate": "c-1", "answers": {"why": {"q": "no"}}});
    let told = agent.call("checkpoint.answer", answer.clone()).await;
    let Err(CallError::Fault(fault)) = told else {
        panic!("{told:?}");
    };
    assert_eq!(fault.code, -32003);
    assert_eq!(fault.data.unwrap()["problems"][0]["checkpoint"], "why");
    answer["answers"]["why"]["q"] = json!("the build needs it");
    let allowed = agent.says("checkpoint.answer", answer).await;
    assert!(allowed["execution"].is_string(), "{allowed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_socket_in_the_place_of_ours_is_noticed() {
    let house = House::new().await;
    let bound = house.door.as_ref().unwrap().bound();
    assert_eq!(bound.find_problem(), None);
    std::fs::remove_file(house.path()).unwrap();
    let gone = bound.find_problem().unwrap();
    assert!(gone.contains("is gone"), "{gone}");
    let _impostor = std::os::unix::net::UnixListener::bind(house.path()).unwrap();
    let taken = bound.find_problem().unwrap();
    assert!(taken.contains("SOMEBODY ELSE listens"), "{taken}");
}

#[tokio::test]
async fn one_use_that_is_asked_about_twice_is_one_run() {
    let house = House::new().await;
    let mut stream = house.raw().await;
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
    let asked = [2, 3]
        .map(|id| say(id, "action.request", &request))
        .concat();
    let last = heard(&format!("{asked}{}", say(4, "no.such", &json!({})))).await;
    assert_eq!(last["id"], 4, "by now both have asked");
    house.pass().await;
    house.pass().await;
    let both = [heard("").await, heard("").await];
    assert!(both[0]["result"]["execution"].is_string(), "{both:?}");
    assert_eq!(both[0]["result"], both[1]["result"]);
    let picture = house.bench.until(|it| it.held.is_empty()).await;
    assert_eq!(picture.sessions.first().unwrap().actions, 1);
}

#[tokio::test]
async fn two_identical_calls_without_a_reference_are_two_decisions() {
    let house = House::new().await;
    let mut first = house.agent().await;
    let key = first.begin("s-1").await["key"].clone();
    house.pass().await;
    let mut second = house.agent().await;
    let mut request = delete("s-1");
    request["key"] = key;
    let decided = async {
        let picture = house.bench.until(|it| it.held.len() == 2).await;
        house.bench.pass(&picture.held[0]).await;
        house.deny("once is enough").await;
    };
    let (one, two, ()) = tokio::join!(
        first.call("action.request", request.clone()),
        second.call("action.request", request.clone()),
        decided
    );
    assert_eq!(
        [one.is_ok(), two.is_ok()].iter().filter(|it| **it).count(),
        1
    );
    let picture = house.bench.until(|it| it.held.is_empty()).await;
    assert_eq!(picture.sessions.first().unwrap().actions, 1);
}

#[tokio::test]
async fn a_call_of_a_new_connection_joins_the_one_whose_connection_is_gone() {
    let house = House::new().await;
    let mut first = house.agent().await;
    let key = first.begin("s-1").await["key"].clone();
    house.pass().await;
    let mut request = delete("s-1");
    request["key"] = key;
    {
        let leaving = first.call("action.request", request.clone());
        tokio::select! {
            told = leaving => panic!("{told:?}"),
            _ = house.bench.until(|it| it.held.len() == 1) => {}
        }
    }
    drop(first);
    let mut visitors = house.door.as_ref().unwrap().connections();
    visitors.wait_for(|there| *there == 0).await.unwrap();
    let mut second = house.agent().await;
    let joined = async {
        house
            .bench
            .until(|it| it.held.iter().any(|held| held.joined == 1))
            .await;
        house.pass().await;
    };
    let (told, ()) = tokio::join!(second.call("action.request", request), joined);
    assert!(told.unwrap()["execution"].is_string());
}
