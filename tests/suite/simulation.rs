//! A seeded run of the whole runtime: unruly agents, a hasty operator, restarts, a failing disk.
//!
//! The one promise is checked from outside after every step: an agent is allowed to run a gated action
//! at most as often as the operator passed exactly that request with valid answers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use cra_core::atlas::{Atlas, load_str};
use cra_core::base::clock::ManualClock;
use cra_core::engine::command::{
    ActionCompleted, Denied, EndSession, FinalStatus, Input, InputSource, Outcome, Reply, Ruling,
};
use cra_core::engine::held::{Held, Subject};
use cra_core::runtime::Requested;
use cra_core::store::Store;
use cra_core::store::memory::MemoryStore;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::support::{Bench, acme, clock, decide, good_answers, request};

/// Steps of one run. Each is something an agent, the operator or the world does.
const STEPS: usize = 300;

/// Gates that stand before a whole session, beside those of the example.
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

fn atlases() -> Vec<Atlas> {
    let mut atlases = acme();
    atlases.push(load_str("moments.yaml", MOMENTS).unwrap().atlas);
    atlases
}

/// A small generator of its own, so that a seed means the same run for ever.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }

    fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        let sides = items.len() as u64;
        (sides > 0).then(|| &items[usize::try_from(self.roll(sides)).unwrap()])
    }
}

/// A request: session, action, parameters.
type Asked = (String, String, String);

struct World {
    dice: Dice,
    store: MemoryStore,
    clock: Arc<ManualClock>,
    bench: Bench,
    sessions: Vec<String>,
    started: u64,
    asking: Vec<(Asked, JoinHandle<Result<Requested, Denied>>)>,
    /// How often the operator passed exactly this, and how often it was allowed.
    passed: BTreeMap<Asked, u64>,
    allowed: BTreeMap<Asked, u64>,
    refused: u64,
    /// Sessions that had a gate before everything they ask for when the step began, and those of
    /// them that had one passed since.
    stopped: BTreeSet<String>,
    freed: BTreeSet<String>,
}

/// What agents ask for: action, and whether it is gated once the session is in.
const ACTIONS: [(&str, bool); 5] = [
    ("ticket.get", false),
    ("ticket.list", false),
    ("ticket.delete", true),
    ("user.ban", true),
    ("payment.refund", true),
];

impl World {
    async fn new(seed: u64) -> Self {
        let store = MemoryStore::default();
        let clock = clock();
        let bench = Bench::under(atlases(), Arc::new(store.clone()), Arc::clone(&clock)).await;
        Self {
            dice: Dice(seed),
            store,
            clock,
            bench,
            sessions: Vec::new(),
            started: 0,
            asking: Vec::new(),
            passed: BTreeMap::new(),
            allowed: BTreeMap::new(),
            refused: 0,
            stopped: BTreeSet::new(),
            freed: BTreeSet::new(),
        }
    }

    async fn step(&mut self) {
        let snapshot = self.bench.snapshot();
        let moments = snapshot.held.iter().filter(|held| is_moment(held));
        self.stopped = moments.map(|held| held.session.to_string()).collect();
        self.freed.clear();
        match self.dice.roll(100) {
            0..12 => self.start().await,
            12..41 => self.ask(),
            41..45 => self.say(),
            45..50 => self.leave(),
            50..53 => self.end().await,
            53..75 => self.pass().await,
            75..80 => self.answer_badly().await,
            80..86 => self.deny().await,
            86..94 => self.clock.advance(Duration::from_secs(self.dice.roll(120))),
            94..97 => self.restart().await,
            _ => self.break_disk().await,
        }
        settle().await;
        self.hear().await;
        self.check();
    }

    async fn start(&mut self) {
        self.started += 1;
        let session = format!("s-{}", self.started);
        self.bench.begin(&session).await;
        self.sessions.push(session);
    }

    fn ask(&mut self) {
        let Some(session) = self.dice.pick(&self.sessions).cloned() else {
            return;
        };
        let (action, _) = *self.dice.pick(&ACTIONS).unwrap();
        let params = json!({"ticket_id": self.dice.roll(3).to_string()});
        let agents = self.bench.runtime.agents();
        let asked = (session.clone(), action.to_owned(), params.to_string());
        let request = request(&session, action, params);
        self.asking.push((
            asked,
            tokio::spawn(async move { agents.request_action(request).await }),
        ));
    }

    fn say(&mut self) {
        let Some(session) = self.dice.pick(&self.sessions).cloned() else {
            return;
        };
        let text = *self.dice.pick(&["hello", "a refund please"]).unwrap();
        let input = Input {
            session: session.parse().unwrap(),
            text: text.to_owned(),
            source: InputSource::User,
        };
        let agents = self.bench.runtime.agents();
        tokio::spawn(async move { agents.input(input).await });
    }

    fn leave(&mut self) {
        let sides = self.asking.len() as u64;
        if sides > 0 {
            let index = usize::try_from(self.dice.roll(sides)).unwrap();
            self.asking.remove(index).1.abort();
        }
    }

    async fn end(&mut self) {
        let Some(session) = self.dice.pick(&self.sessions).cloned() else {
            return;
        };
        self.sessions.retain(|known| *known != session);
        let end = EndSession {
            session: session.parse().unwrap(),
            status: FinalStatus::Completed,
            summary: None,
        };
        self.bench.runtime.agents().end_session(end).await.unwrap();
    }

    fn any_held(&mut self) -> Option<Arc<Held>> {
        let snapshot = self.bench.snapshot();
        self.dice.pick(&snapshot.held).cloned()
    }

    async fn pass(&mut self) {
        let Some(held) = self.any_held() else { return };
        let reply = self.bench.pass(&held).await;
        if matches!(&reply, Reply::Decided(decided) if decided.outcome == Outcome::Passed) {
            self.note_passed(&held);
        }
    }

    fn note_passed(&mut self, held: &Held) {
        if is_moment(held) {
            self.freed.insert(held.session.to_string());
        } else {
            *self.passed.entry(asked(held)).or_default() += 1;
        }
    }

    async fn answer_badly(&mut self) {
        let Some(held) = self.any_held() else { return };
        let mut answers = good_answers(&held);
        let gate = usize::try_from(self.dice.roll(answers.len() as u64)).unwrap();
        let bad = [
            json!(false),
            json!("no"),
            json!(""),
            json!("not understood"),
            Value::Null,
        ];
        let bad = self.dice.pick(&bad).unwrap().clone();
        for answer in answers[gate].values_mut() {
            *answer = bad.clone();
        }
        // A free text may say "no"; every other question must not pass.
        let text = answers[gate].contains_key("justification");
        let reply = self
            .bench
            .runtime
            .desk()
            .decide(decide(&held, Ruling::Pass { answers }))
            .await;
        match reply {
            Reply::Decided(decided) if decided.outcome == Outcome::Passed => {
                assert!(text, "{held:?} passed with {bad}");
                self.note_passed(&held);
            }
            _ => self.refused += 1,
        }
    }

    async fn deny(&mut self) {
        let Some(held) = self.any_held() else { return };
        let ruling = Ruling::Deny {
            reason: "not now".to_owned(),
        };
        self.bench
            .runtime
            .desk()
            .decide(decide(&held, ruling))
            .await;
    }

    /// The process dies where it stands, and another one opens the store.
    async fn restart(&mut self) {
        let held: Vec<_> = self
            .bench
            .snapshot()
            .held
            .iter()
            .map(|h| h.id.clone())
            .collect();
        self.store = self.store.reopen();
        let store = Arc::new(self.store.clone());
        self.bench = Bench::under(atlases(), store, Arc::clone(&self.clock)).await;
        settle().await;
        let back: Vec<_> = self
            .bench
            .snapshot()
            .held
            .iter()
            .map(|h| h.id.clone())
            .collect();
        let overdue = |id| self.bench.snapshot().decided.iter().any(|d| d.gate == id);
        for id in held {
            assert!(back.contains(&id) || overdue(id.clone()), "{id} was lost");
        }
    }

    async fn break_disk(&mut self) {
        self.store.fail_after(self.dice.roll(3));
        for _ in 0..4 {
            self.ask();
            self.pass().await;
            settle().await;
            self.hear().await;
        }
        self.restart().await;
    }

    /// Takes in what agents were told.
    async fn hear(&mut self) {
        let (done, waiting) = self
            .asking
            .drain(..)
            .partition(|(_, task)| task.is_finished());
        self.asking = waiting;
        let done: Vec<(Asked, JoinHandle<_>)> = done;
        for (asked, task) in done {
            if let Ok(Ok(Requested::Allowed(allowed))) = task.await {
                let free = !self.stopped.contains(&asked.0) || self.freed.contains(&asked.0);
                assert!(free, "{asked:?} ran past a gate before its whole session");
                let completed = ActionCompleted {
                    session: asked.0.parse().unwrap(),
                    execution: allowed.execution,
                    result: Ok(String::new()),
                };
                *self.allowed.entry(asked).or_default() += 1;
                // It fails where the session ended or the disk broke meanwhile.
                let _ = self.bench.runtime.agents().complete_action(completed).await;
            }
        }
    }

    fn check(&self) {
        for (asked, count) in &self.allowed {
            let start = (asked.0.clone(), "session_start".to_owned(), String::new());
            assert!(
                self.passed.contains_key(&start),
                "{asked:?} ran before its session was let in"
            );
            let gated = ACTIONS
                .iter()
                .any(|(action, gated)| *action == asked.1 && *gated);
            let passed = self.passed.get(asked).copied().unwrap_or(0);
            assert!(
                !gated || *count <= passed,
                "{asked:?} ran {count} times, passed {passed} times"
            );
        }
    }

    async fn check_chains(&self) {
        for checked in self.store.verify().await.unwrap() {
            assert!(
                checked.verdict.is_sound(),
                "{}: {}",
                checked.session,
                checked.verdict
            );
        }
    }
}

fn is_moment(held: &Held) -> bool {
    matches!(held.subject, Subject::Moment(_))
}

fn asked(held: &Held) -> Asked {
    let params = match &held.subject {
        Subject::SessionStart | Subject::Moment(_) => String::new(),
        Subject::Action(call) => call.params.to_string(),
    };
    (held.session.to_string(), held.action().to_owned(), params)
}

/// Lets everything that can go on go on. One thread, no real time: the order is always the same.
async fn settle() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}

#[test]
fn no_agent_gets_past_a_gate_that_was_not_passed() {
    let mut ran = 0;
    let mut held_back = 0;
    for seed in 0..6 {
        // The seed of a failing run is the last one printed.
        println!("seed {seed}");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
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
            held_back += world.refused;
        });
    }
    // A run in which nothing happens proves nothing.
    assert!(
        ran > 100 && held_back > 30,
        "{ran} ran, {held_back} were held back"
    );
}
