//! A seeded run of the whole runtime: unruly agents, a hasty operator, a moody extension, restarts, a
//! clock that is set, a disk that fails and hangs, and a stranger who edits the state while no console runs.
//!
//! The one promise is checked from outside after every step: an agent is allowed to run a gated action
//! at most as often as the operator passed exactly that request with valid answers, or as the extension
//! accepted it where it decides. And every reply to agents and the operator is on record after
//! every crash.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use cra_core::atlas::{Atlas, load_str};
use cra_core::base::clock::{Clock, ManualClock};
use cra_core::base::id::CountedIds;
use cra_core::engine::command::{
    AcceptedEvent, AgentQuestions as Questions, DenialReply, Injected, OperatorReply,
    StartedSession,
};
use cra_core::engine::held::{Held, HeldSubject};
use cra_core::runtime::snapshot::ConsoleAccess;
use cra_core::runtime::{AnswerReply, RequestReply, Runtime, RuntimeParts};
use cra_core::store::Store;
use cra_core::store::memory::MemoryStore;
use cra_core::trace::verification::TrustAnchors;
use tokio::task::JoinHandle;

use counts::{Counts, check_counts};
use extension::{OUTSIDE, UnreliableExtension};
use record::{Acknowledged, Recorded};
use tamper::Tampering;
use time::Deadlines;

use super::support::{Bench, Dice, acme, clock, parts, settle, signer};

mod agents;
mod counts;
mod extension;
mod faults;
mod operator;
mod record;
mod replies;
mod tamper;
mod time;

/// Steps of one run. Each is something an agent, the operator or the world does.
const STEPS: usize = 340;

/// Gates before a whole session, in addition to those of the example.
const MOMENTS: &str = r#"
atlas_version: "1.0"
atlas_id: com.example.moments
version: "1"
name: Moments
unknown_actions: allow
checkpoints:
  - { checkpoint_id: after, mode: blocking, trigger: { type: action_post, patterns: ["ticket.list"] } }
  - { checkpoint_id: words, mode: blocking, trigger: { type: keyword, patterns: [refund] } }
  - { checkpoint_id: often, mode: blocking, trigger: { type: count_interval, actions: 6 } }
"#;

/// Contexts and guidance without a gate of their own.
const GIVING: &str = r#"
atlas_version: "1.0"
atlas_id: com.example.giving
version: "1"
name: Giving
unknown_actions: allow
checkpoints:
  - checkpoint_id: welcome
    mode: advisory
    trigger: { type: session_start }
    guidance: { format: markdown, content: the door code is 4711 }
    inject_contexts: [numbers]
context_blocks:
  - { context_id: numbers, content: the numbers of all customers, inject_mode: on_demand }
  - { context_id: rules, content: be polite, inject_mode: always }
  - { context_id: greeting, content: greet back, inject_mode: on_match, keywords: [hello] }
"#;

static ATLASES: LazyLock<Vec<Atlas>> = LazyLock::new(|| {
    let mut atlases = acme();
    for text in [MOMENTS, OUTSIDE, GIVING] {
        atlases.push(load_str("beside.yaml", text).unwrap().atlas);
    }
    atlases
});

/// A request: session, action, parameters.
type RequestKey = (String, String, String);

/// Quality of an operator's answers.
#[derive(Clone, Copy, PartialEq)]
enum Quality {
    Good,
    /// Wrong, but for a free text, which may say anything.
    Bad {
        text: bool,
    },
}

/// A request of an agent that waits for its answer.
struct PendingRequest {
    request_key: RequestKey,
    /// The opening of the store that it was asked at.
    opening: u64,
    task: JoinHandle<Result<RequestReply, DenialReply>>,
}

/// An agent that begins a session.
struct PendingStart {
    session: String,
    /// False where the session is taken up again.
    new: bool,
    task: JoinHandle<Result<StartedSession, DenialReply>>,
}

/// A session that sends input, or a request other than an action.
struct PendingInput {
    session: String,
    /// The input, where it is one.
    text: Option<String>,
    task: JoinHandle<Result<AcceptedEvent, DenialReply>>,
}

struct World {
    dice: Dice,
    store: MemoryStore,
    clock: Arc<ManualClock>,
    extension: UnreliableExtension,
    bench: Bench,
    /// Openings of the store, and whether the store is watched over at this one.
    opening: u64,
    watched: bool,
    /// The reason why nothing may be allowed now.
    closed: Option<&'static str>,
    sessions: Vec<String>,
    /// Sessions that are over because the state was tampered with.
    over: BTreeSet<String>,
    started: u64,
    starting: Vec<PendingStart>,
    asking: Vec<PendingRequest>,
    /// Gates that agents were asked at, and what they answered there.
    own: Vec<Questions>,
    answering: Vec<(RequestKey, JoinHandle<Result<AnswerReply, DenialReply>>)>,
    /// Input that was said, and what the operator decides, until there is an answer.
    saying: Vec<PendingInput>,
    deciding: Vec<(Arc<Held>, Quality, JoinHandle<OperatorReply>)>,
    completing: Vec<(String, JoinHandle<Result<Injected, DenialReply>>)>,
    /// Requests that the operator passed without a confirmation that the pass is recorded.
    doubtful: Vec<Arc<Held>>,
    /// Digests of inputs that the operator let pass.
    pass_start_gate: BTreeSet<String>,
    /// Number of passes of exactly this request, and number of runs that were allowed.
    passed: BTreeMap<RequestKey, u64>,
    allowed: BTreeMap<RequestKey, u64>,
    /// Sessions that had a gate before everything they ask for when the step began, and those of
    /// them that had one passed since.
    stopped: BTreeSet<String>,
    freed: BTreeSet<String>,
    deadlines: Deadlines,
    acknowledged: Acknowledged,
    recorded: Recorded,
    tampering: Tampering,
    counts: Counts,
}

/// Actions that agents request, and whether they are gated after the start gate.
const ACTIONS: [(&str, bool); 6] = [
    ("ticket.get", false),
    ("ticket.list", false),
    ("ticket.comment", false),
    ("ticket.delete", true),
    ("user.ban", true),
    ("payment.refund", true),
];

/// A console on a store, with identifiers that no earlier opening gave.
async fn open(
    store: &MemoryStore,
    extension: &UnreliableExtension,
    clock: &Arc<ManualClock>,
    opening: u64,
) -> Bench {
    let parts = RuntimeParts {
        atlases: ATLASES.clone(),
        clock: Arc::clone(clock) as Arc<dyn Clock>,
        ids: Box::new(CountedIds::starting_at(u128::from(opening) << 32)),
        access: ConsoleAccess::Write,
        extensions: extension.registry(),
        ..parts(Arc::new(store.clone())).await
    };
    Bench {
        runtime: Runtime::start(parts).await.unwrap(),
        clock: Arc::clone(clock),
    }
}

impl World {
    async fn new(seed: u64) -> Self {
        let store = MemoryStore::default();
        let clock = clock();
        let extension = UnreliableExtension::new(seed);
        let bench = open(&store, &extension, &clock, 1).await;
        Self {
            dice: Dice(seed),
            store,
            clock,
            extension,
            bench,
            opening: 1,
            watched: false,
            closed: None,
            sessions: Vec::new(),
            over: BTreeSet::new(),
            started: 0,
            starting: Vec::new(),
            asking: Vec::new(),
            own: Vec::new(),
            answering: Vec::new(),
            saying: Vec::new(),
            deciding: Vec::new(),
            completing: Vec::new(),
            doubtful: Vec::new(),
            pass_start_gate: BTreeSet::new(),
            passed: BTreeMap::new(),
            allowed: BTreeMap::new(),
            stopped: BTreeSet::new(),
            freed: BTreeSet::new(),
            deadlines: Deadlines::default(),
            acknowledged: Acknowledged::default(),
            recorded: Recorded::default(),
            tampering: Tampering::default(),
            counts: Counts::default(),
        }
    }

    async fn step(&mut self) {
        self.note_stopped();
        match self.dice.roll(130) {
            0..8 => self.start(),
            8..28 => self.ask(),
            28..36 => self.ask_twice(),
            36..40 => self.rely(),
            40..48 => self.answer_own(),
            48..54 => self.say(),
            54..58 => self.want(),
            58..61 => self.leave(),
            61..63 => self.end(),
            63..90 => self.pass(),
            90..96 => self.answer_badly(),
            96..99 => self.deny().await,
            99..104 => self.extension.give_up(),
            104..114 => self.clock.advance(Duration::from_secs(self.dice.roll(200))),
            114..118 => self.set_clock().await,
            118..120 => self.crash().await,
            120..124 => self.break_disk().await,
            124..127 => self.hang_disk().await,
            _ => self.tamper().await,
        }
        settle().await;
        self.hear().await;
        self.check();
    }

    /// Notes which sessions have a gate before everything they ask for.
    fn note_stopped(&mut self) {
        let snapshot = self.bench.snapshot();
        let moments = snapshot.held.iter().filter(|held| is_moment(held));
        self.stopped = moments.map(|held| held.session.to_string()).collect();
        self.freed.clear();
    }

    async fn check_chains(&mut self) {
        let report = self.store.verify(TrustAnchors::nothing()).await.unwrap();
        assert!(report.is_sound(), "{report:?}");
        // The next process signs all that there is before it lets any agent in.
        self.restart().await;
        let store = self.store.reopen();
        let next = open(&store, &self.extension, &self.clock, self.opening + 1).await;
        next.runtime.stop().await;
        let key = signer(&store).await.verifier();
        let report = store
            .verify(TrustAnchors::nothing().with_key(key))
            .await
            .unwrap();
        assert!(report.is_sound(), "{report:?}");
        let words = report.chains.iter().map(|chain| chain.verdict.label());
        assert!(words.clone().all(|word| word == "SEALED"), "{report:?}");
    }
}

fn is_moment(held: &Held) -> bool {
    matches!(held.subject, HeldSubject::Moment(_))
}

fn request_key(held: &Held) -> RequestKey {
    let params = match &held.subject {
        HeldSubject::SessionStart | HeldSubject::Moment(_) => String::new(),
        HeldSubject::Action(call) => call.params.to_string(),
    };
    (held.session.to_string(), held.action().to_owned(), params)
}

/// The start of a session, as something that is asked for.
fn start_of(session: &str) -> RequestKey {
    let action = "session_start".to_owned();
    (session.to_owned(), action, String::new())
}

#[test]
fn no_agent_bypasses_a_gate_that_was_not_passed() {
    let mut ran = 0;
    let (mut silent, mut answered) = (0, 0);
    let mut all = Vec::new();
    for seed in 0..6 {
        // The seed of a failing run is the last one printed.
        println!("seed {seed}");
        // Real time does not count: the watch over the store waits for no second.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let mut world = World::new(seed).await;
            for _ in 0..STEPS {
                world.step().await;
            }
            world.check_chains().await;
            ran += world
                .allowed
                .iter()
                .filter(|((_, action, _), _)| action != "ticket.get")
                .count();
            silent += world.extension.with_log(|output| output.silent);
            let own = world.allowed.keys();
            answered += own
                .filter(|request_key| request_key.1 == "ticket.comment")
                .count();
            all.push(world.counts);
        });
    }
    check_counts(&all);
    assert!(ran > 100, "{ran} ran");
    assert!(
        silent > 30 && answered > 5,
        "{silent} were silent, {answered} answered"
    );
}
