//! A seeded run of the whole runtime: unruly agents, a hasty operator, a moody extension, restarts, a
//! failing disk.
//!
//! The one promise is checked from outside after every step: an agent is allowed to run a gated action
//! at most as often as the operator passed exactly that request with valid answers, or as the extension
//! was content with it where it has the say.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use cra_core::atlas::{Atlas, load_str};
use cra_core::base::clock::ManualClock;
use cra_core::base::digest::Digest;
use cra_core::engine::command::{
    Accepted, ActionCompleted, Allowed, Asked as Questions, Denied, Outcome, Reply, Ruling,
};
use cra_core::engine::held::{Held, Subject};
use cra_core::runtime::{Answered, Requested};
use cra_core::store::Store;
use cra_core::store::memory::MemoryStore;
use cra_core::trace::verify::Trust;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use outside::{Moody, OUTSIDE};

use super::support::{Bench, Dice, acme, clock, decide, good_answers, settle, signer};

mod agents;
mod outside;

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
    for text in [MOMENTS, OUTSIDE] {
        atlases.push(load_str("beside.yaml", text).unwrap().atlas);
    }
    atlases
}

/// A request: session, action, parameters.
type Asked = (String, String, String);

/// How an operator answers.
#[derive(Clone, Copy, PartialEq)]
enum Quality {
    Good,
    /// Wrong, but for a free text, which may say anything.
    Bad {
        text: bool,
    },
}

struct World {
    dice: Dice,
    store: MemoryStore,
    clock: Arc<ManualClock>,
    moody: Moody,
    bench: Bench,
    sessions: Vec<String>,
    started: u64,
    asking: Vec<(Asked, JoinHandle<Result<Requested, Denied>>)>,
    /// Gates that agents were asked at, and what they answered there.
    own: Vec<Questions>,
    answering: Vec<(Asked, JoinHandle<Result<Answered, Denied>>)>,
    /// Input that was said, and what the operator decides, until there is an answer.
    saying: Vec<(String, JoinHandle<Result<Accepted, Denied>>)>,
    deciding: Vec<(Arc<Held>, Quality, JoinHandle<Reply>)>,
    /// Digests of inputs that the operator let pass.
    let_in: BTreeSet<String>,
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
const ACTIONS: [(&str, bool); 6] = [
    ("ticket.get", false),
    ("ticket.list", false),
    ("ticket.comment", false),
    ("ticket.delete", true),
    ("user.ban", true),
    ("payment.refund", true),
];

impl World {
    async fn new(seed: u64) -> Self {
        let store = MemoryStore::default();
        let clock = clock();
        let moody = Moody::new(seed);
        let kept = Arc::new(store.clone());
        let bench = Bench::with(atlases(), moody.registry(), kept, Arc::clone(&clock)).await;
        Self {
            dice: Dice(seed),
            store,
            clock,
            moody,
            bench,
            sessions: Vec::new(),
            started: 0,
            asking: Vec::new(),
            own: Vec::new(),
            answering: Vec::new(),
            saying: Vec::new(),
            deciding: Vec::new(),
            let_in: BTreeSet::new(),
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
            0..10 => self.start().await,
            10..30 => self.ask(),
            30..34 => self.rely(),
            34..42 => self.answer_own(),
            42..48 => self.say(),
            48..51 => self.leave(),
            51..53 => self.end(),
            53..72 => self.pass(),
            72..77 => self.answer_badly(),
            77..81 => self.deny().await,
            81..87 => self.moody.give_up(),
            87..94 => self.clock.advance(Duration::from_secs(self.dice.roll(120))),
            94..97 => self.restart().await,
            _ => self.break_disk().await,
        }
        settle().await;
        self.hear().await;
        self.check();
    }

    fn any_held(&mut self) -> Option<Arc<Held>> {
        let snapshot = self.bench.snapshot();
        self.dice.pick(&snapshot.held).cloned()
    }

    fn pass(&mut self) {
        let Some(held) = self.any_held() else { return };
        let answers = good_answers(&held);
        self.decide(held, Ruling::Pass { answers }, Quality::Good);
    }

    fn decide(&mut self, held: Arc<Held>, ruling: Ruling, quality: Quality) {
        let (desk, decide) = (self.bench.runtime.desk(), decide(&held, ruling));
        let task = tokio::spawn(async move { desk.decide(decide).await });
        self.deciding.push((held, quality, task));
    }

    fn note_passed(&mut self, held: &Held) {
        if let Subject::Moment(moment) = &held.subject {
            self.freed.insert(held.session.to_string());
            let input = moment.data.get("input_hash").and_then(Value::as_str);
            self.let_in.extend(input.map(str::to_owned));
        } else {
            *self.passed.entry(asked(held)).or_default() += 1;
        }
    }

    fn answer_badly(&mut self) {
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
        let text = answers[gate]
            .keys()
            .any(|id| id == "justification" || id == "why");
        self.decide(held, Ruling::Pass { answers }, Quality::Bad { text });
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
        let registry = self.moody.registry();
        self.bench = Bench::with(atlases(), registry, store, Arc::clone(&self.clock)).await;
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
            self.pass();
            settle().await;
            self.hear().await;
        }
        self.restart().await;
    }

    /// Takes in what the operator and agents were told, the operator first: what was passed counts.
    async fn hear(&mut self) {
        for (held, quality, task) in finished(&mut self.deciding, |it| it.2.is_finished()) {
            let reply = task.await.unwrap();
            let passed = matches!(&reply, Reply::Decided(it) if it.outcome == Outcome::Passed);
            let may = matches!(quality, Quality::Good | Quality::Bad { text: true });
            assert!(may || !passed, "{held:?} passed with bad answers");
            if passed {
                self.note_passed(&held);
            }
            self.refused += u64::from(!passed && quality != Quality::Good);
        }
        for (asked, task) in finished(&mut self.answering, |it| it.1.is_finished()) {
            match task.await.unwrap() {
                Ok(Answered::Allowed(allowed)) => self.run(asked, allowed),
                Ok(Answered::Accepted(_)) => drop(self.freed.insert(asked.0)),
                Ok(Answered::Asked(questions)) => self.own.push(questions),
                Ok(Answered::Invalid(_)) | Err(_) => {}
            }
        }
        for (text, task) in finished(&mut self.saying, |it| it.1.is_finished()) {
            if task.await.unwrap().is_ok() {
                let calm = self.moody.said(|said| said.calm.get(&text) == Some(&true));
                let plain = calm && !text.contains("refund");
                let let_in = self.let_in.contains(&Digest::of(&text).to_string());
                assert!(plain || let_in, "`{text}` was taken");
            }
        }
        for (asked, task) in finished(&mut self.asking, |it| it.1.is_finished()) {
            match task.await {
                Ok(Ok(Requested::Allowed(allowed))) => self.run(asked, allowed),
                Ok(Ok(Requested::Asked(questions))) => self.own.push(questions),
                Ok(Err(_)) | Err(_) => {}
            }
        }
    }

    /// An agent runs what it was allowed to.
    fn run(&mut self, asked: Asked, allowed: Allowed) {
        let free = !self.stopped.contains(&asked.0) || self.freed.contains(&asked.0);
        assert!(free, "{asked:?} ran past a gate before its whole session");
        let completed = ActionCompleted {
            session: asked.0.parse().unwrap(),
            execution: allowed.execution,
            result: Ok(String::new()),
        };
        *self.allowed.entry(asked).or_default() += 1;
        // It fails where the session ended or the disk broke meanwhile.
        let agents = self.bench.runtime.agents();
        tokio::spawn(async move { agents.complete_action(completed).await });
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
            let times = |of: &BTreeMap<Asked, u64>| of.get(asked).copied().unwrap_or(0);
            let passed = times(&self.passed);
            let most = match asked.1.as_str() {
                // Whoever answers, the extension judges the answer.
                "ticket.comment" => self.moody.said(|said| times(&said.fair)),
                "ticket.get" => passed + self.moody.said(|said| times(&said.cleared)),
                _ if gated => passed,
                _ => u64::MAX,
            };
            assert!(
                *count <= most,
                "{asked:?} ran {count} times, and might {most} times"
            );
        }
    }

    async fn check_chains(&self) {
        let report = self.store.verify(Trust::nothing()).await.unwrap();
        assert!(report.is_sound(), "{report:?}");
        // Whoever starts on it signs all that there is before anybody is let in.
        let store = self.store.reopen();
        let (registry, clock) = (self.moody.registry(), Arc::clone(&self.clock));
        let next = Bench::with(atlases(), registry, Arc::new(store.clone()), clock).await;
        next.runtime.stop().await;
        let key = signer(&store).await.verifier();
        let report = store.verify(Trust::nothing().key(key)).await.unwrap();
        assert!(report.is_sound(), "{report:?}");
        let words = report.chains.iter().map(|chain| chain.verdict.word());
        assert!(words.clone().all(|word| word == "SEALED"), "{report:?}");
    }
}

/// Takes out what is finished, in order.
fn finished<T>(all: &mut Vec<T>, is_finished: impl Fn(&T) -> bool) -> Vec<T> {
    all.extract_if(.., |it| is_finished(it)).collect()
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

#[test]
fn no_agent_gets_past_a_gate_that_was_not_passed() {
    let mut ran = 0;
    let mut held_back = 0;
    let (mut silent, mut answered) = (0, 0);
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
            silent += world.moody.said(|said| said.silent);
            let own = world.allowed.keys().filter(|it| it.1 == "ticket.comment");
            answered += own.count();
        });
    }
    // A run in which nothing happens proves nothing.
    assert!(
        ran > 100 && held_back > 30,
        "{ran} ran, {held_back} were held back"
    );
    assert!(
        silent > 30 && answered > 5,
        "{silent} were silent, {answered} answered"
    );
}
