//! A stranger who edits the state of a simulated world while no console runs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cra_core::base::clock::Clock;
use cra_core::engine::held::{GateOrigin, Held, HeldSubject, request_hash};
use cra_core::store::{Batch, StateRow, Store};
use serde_json::{Value, json};

use super::{ACTIONS, RequestKey, World, request_key, start_of};
use crate::support::settle;

/// Rows that the stranger kept.
#[derive(Default)]
pub(super) struct Tampering {
    /// Every permit that was ever seen.
    permits: BTreeMap<String, String>,
    /// All rows as they were some time ago.
    old: Vec<StateRow>,
}

/// An edit of the state: its name, the rows that change, and what it would let run.
struct Edit {
    name: &'static str,
    rows: Vec<StateRow>,
    lets_run: Vec<RequestKey>,
}

fn row(kind: &str, key: &str, body: &Value) -> StateRow {
    StateRow {
        kind: kind.to_owned(),
        key: key.to_owned(),
        body: Some(body.to_string()),
    }
}

impl World {
    /// The process dies, the state is edited, and another process opens the store. Nothing runs by the edit.
    pub(super) async fn tamper(&mut self) {
        self.start();
        self.ask_let_in();
        settle().await;
        self.hear().await;
        if self.dice.roll(4) > 0 {
            self.use_permit().await;
        }
        self.store = self.store.reopen();
        self.compare_with_record().await;
        let rows = self.store.state().await.unwrap();
        let edit = self.edit(&rows);
        let live = rows.iter().filter(|row| row.kind == "session");
        let live: Vec<_> = live.map(|row| row.key.clone()).collect();
        self.keep_rows(rows);
        let Some(edit) = edit else {
            self.open_again().await;
            return;
        };
        let batch = Batch {
            state: edit.rows,
            ..Batch::default()
        };
        self.store.append(batch).await.unwrap().await.unwrap();
        self.store = self.store.reopen();
        self.deadlines.forget();
        self.over.extend(live);
        self.over.extend(std::mem::take(&mut self.sessions));
        *self.counts.tampered.entry(edit.name).or_default() += 1;
        self.open_again().await;
        // The operator passes what there is, and agents ask for what the edit is for.
        for held in self.bench.snapshot().held.clone() {
            self.pass_held(held);
        }
        settle().await;
        self.hear().await;
        for request_key in edit.lets_run {
            self.ask_for(request_key);
        }
        settle().await;
        self.hear().await;
        let snapshot = self.bench.snapshot();
        assert!(snapshot.distrusted.is_some(), "{}: no alarm", edit.name);
        self.begin_anew().await;
    }

    /// A session that was let in asks for a gated action, twice at once.
    fn ask_let_in(&mut self) {
        let pass_start_gate = |session: &&String| self.passed.contains_key(&start_of(session));
        let sessions: Vec<_> = self
            .sessions
            .iter()
            .filter(pass_start_gate)
            .cloned()
            .collect();
        if let Some(session) = self.dice.pick(&sessions) {
            let params = json!({"ticket_id": "1"}).to_string();
            let wanted = (session.clone(), "ticket.delete".to_owned(), params);
            self.ask_for(wanted.clone());
            self.ask_for(wanted);
        }
    }

    /// An agent leaves, its request is passed, and the agent comes back and uses the permit. The stranger sees
    /// the permit meanwhile.
    async fn use_permit(&mut self) {
        self.note_stopped();
        let Some(held) = self.any_held_action() else {
            return;
        };
        let wanted = request_key(&held);
        for left in self.asking.extract_if(.., |one| one.request_key == wanted) {
            left.task.abort();
        }
        settle().await;
        self.pass_held(Arc::new(held));
        settle().await;
        self.hear().await;
        let rows = self.store.state().await.unwrap();
        self.keep_permits(&rows);
        self.ask_for(wanted);
        settle().await;
        self.hear().await;
    }

    /// Begins sessions in the place of those that are over.
    async fn begin_anew(&mut self) {
        for _ in 0..3 {
            self.start();
        }
        settle().await;
        self.hear().await;
        for held in self.bench.snapshot().held.clone() {
            self.pass_held(held);
        }
    }

    fn keep_permits(&mut self, rows: &[StateRow]) {
        for row in rows.iter().filter(|row| row.kind == "permit") {
            let body = row.body.clone().unwrap();
            self.tampering.permits.insert(row.key.clone(), body);
        }
    }

    fn keep_rows(&mut self, rows: Vec<StateRow>) {
        self.keep_permits(&rows);
        // Old enough to differ, and not always the oldest.
        if self.tampering.old.is_empty() || self.dice.roll(3) == 0 {
            self.tampering.old = rows;
        }
    }

    /// An edit of any kind for which there is something to edit.
    fn edit(&mut self, rows: &[StateRow]) -> Option<Edit> {
        let first = self.dice.roll(5);
        (first..first + 5).find_map(|kind| match kind % 5 {
            0 => self.put_back_permit(rows),
            1 => self.make_permit(),
            2 => self.edit_held(rows),
            3 => self.open_session(rows),
            _ => self.put_back_all(rows),
        })
    }

    fn any_held_action(&mut self) -> Option<Held> {
        let snapshot = self.bench.snapshot();
        let actions = snapshot.held.iter();
        let actions = actions.filter(|held| matches!(held.subject, HeldSubject::Action(_)));
        let actions: Vec<_> = actions.cloned().collect();
        self.dice.pick(&actions).map(|held| (**held).clone())
    }

    /// Makes a permit for a request that is held.
    fn make_permit(&mut self) -> Option<Edit> {
        let held = self.any_held_action()?;
        let passed = held.gates.iter().map(|gate| {
            let kind = match gate.origin {
                GateOrigin::Checkpoint { .. } => "checkpoint",
                GateOrigin::Approval { .. } | GateOrigin::Override { .. } => "policy",
            };
            format!("{kind}/{}/{}", gate.origin.atlas_id(), gate.origin.id())
        });
        let passed: Vec<_> = passed.collect();
        let permit = json!({
            "request_hash": held.request_hash,
            "atlas_hash": held.atlas_hash,
            "session": held.session,
            "gate": held.id,
            "expires_at": self.clock.now().plus(Duration::from_mins(4)),
            "given": {"contexts": [], "guidance": []},
            "passed": passed,
            "approved_by": "op-1",
            "trace_id": held.trace_id,
            "span_id": held.span_id,
        });
        let gone = StateRow {
            kind: "held".to_owned(),
            key: held.id.to_string(),
            body: None,
        };
        Some(Edit {
            name: "permit made",
            rows: vec![gone, row("permit", held.id.as_str(), &permit)],
            lets_run: vec![request_key(&held)],
        })
    }

    /// Shows the operator another request than the one that runs.
    fn edit_held(&mut self, rows: &[StateRow]) -> Option<Edit> {
        let held = self.any_held_action()?;
        let mut rows = rows.iter();
        let kept = rows.find(|row| row.kind == "held" && row.key == held.id.as_str())?;
        let mut body: Value = serde_json::from_str(kept.body.as_ref()?).unwrap();
        let params = body.pointer_mut("/held/subject/action/params").unwrap();
        *params = json!({"ticket_id": "harmless"});
        Some(Edit {
            name: "held edited",
            rows: vec![row("held", held.id.as_str(), &body)],
            lets_run: vec![request_key(&held)],
        })
    }

    /// Puts a permit back that was used.
    fn put_back_permit(&mut self, rows: &[StateRow]) -> Option<Edit> {
        let there = |key: &String| {
            rows.iter()
                .any(|row| row.kind == "permit" && row.key == *key)
        };
        let live = |session: &Value| {
            let mut rows = rows.iter();
            rows.any(|row| row.kind == "session" && *session == json!(row.key))
        };
        let used = self.tampering.permits.iter().filter(|(key, _)| !there(key));
        let used = used.filter_map(|(key, body)| {
            let body: Value = serde_json::from_str(body).unwrap();
            live(&body["session"]).then(|| (key.clone(), body))
        });
        let used: Vec<_> = used.collect();
        let (key, mut permit) = self.dice.pick(&used)?.clone();
        permit["expires_at"] = json!(self.clock.now().plus(Duration::from_mins(4)));
        let session = permit["session"].as_str().unwrap().to_owned();
        let of_permit = requests_of(&session).into_iter();
        let of_permit =
            of_permit.filter(|request_key| hash_of(request_key) == permit["request_hash"]);
        Some(Edit {
            name: "permit put back",
            rows: vec![row("permit", &key, &permit)],
            lets_run: of_permit.collect(),
        })
    }

    /// Puts the whole state back as it was.
    fn put_back_all(&mut self, rows: &[StateRow]) -> Option<Edit> {
        let old = std::mem::take(&mut self.tampering.old);
        if old.is_empty() {
            return None;
        }
        let gone = rows
            .iter()
            .cloned()
            .map(|row| StateRow { body: None, ..row });
        let sessions = old.iter().filter(|row| row.kind == "session");
        let lets_run = sessions.take(2).flat_map(|row| requests_of(&row.key));
        let lets_run = lets_run.collect();
        Some(Edit {
            name: "old state put back",
            rows: gone.chain(old).collect(),
            lets_run,
        })
    }

    /// Opens a session whose start gate is not passed.
    fn open_session(&mut self, rows: &[StateRow]) -> Option<Edit> {
        let sessions = rows.iter().filter(|row| row.kind == "session");
        let closed = sessions.filter_map(|row| {
            let body: Value = serde_json::from_str(row.body.as_ref()?).unwrap();
            (body["entry"] != json!("open")).then(|| (row.key.clone(), body))
        });
        let closed: Vec<_> = closed.collect();
        let (key, mut session) = self.dice.pick(&closed)?.clone();
        session["entry"] = json!("open");
        session["unlocked"] = json!([["com.acme.support", "basic-support"]]);
        Some(Edit {
            name: "session opened",
            lets_run: requests_of(&key),
            rows: vec![row("session", &key, &session)],
        })
    }
}

/// Everything that a session ever asks for.
fn requests_of(session: &str) -> Vec<RequestKey> {
    let tickets = |(action, _): (&str, bool)| {
        let action = action.to_owned();
        (0..3).map(move |ticket| {
            let params = json!({"ticket_id": ticket.to_string()});
            (action.clone(), params.to_string())
        })
    };
    let all = ACTIONS.into_iter().flat_map(tickets);
    all.map(|(action, params)| (session.to_owned(), action, params))
        .collect()
}

/// The hash of a request, as permits have it.
fn hash_of((session, action, params): &RequestKey) -> Value {
    let params = serde_json::from_str(params).unwrap();
    json!(request_hash(&session.parse().unwrap(), action, &params))
}
