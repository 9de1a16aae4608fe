//! The acts of the operator of a simulated world.

use std::sync::Arc;

use cra_core::engine::command::{DecisionRefusal, HeldOutcome, OperatorReply, Ruling};
use cra_core::engine::held::{Held, HeldSubject};
use serde_json::{Value, json};

use super::{Quality, World, request_key};
use crate::support::{decide, good_answers};

impl World {
    fn any_held(&mut self) -> Option<Arc<Held>> {
        let snapshot = self.bench.snapshot();
        self.dice.pick(&snapshot.held).cloned()
    }

    pub(super) fn pass(&mut self) {
        let Some(held) = self.any_held() else { return };
        self.pass_held(held);
    }

    pub(super) fn pass_held(&mut self, held: Arc<Held>) {
        let answers = good_answers(&held);
        self.decide(held, Ruling::Pass { answers }, Quality::Good);
    }

    fn decide(&mut self, held: Arc<Held>, ruling: Ruling, quality: Quality) {
        let (operator, decide) = (self.bench.runtime.operator_handle(), decide(&held, ruling));
        let task = tokio::spawn(async move { operator.decide(decide).await });
        self.deciding.push((held, quality, task));
    }

    /// Takes in the answer to a decision.
    pub(super) fn hear_decision(
        &mut self,
        held: &Arc<Held>,
        quality: Quality,
        reply: &OperatorReply,
    ) {
        let passed = match reply {
            OperatorReply::Decided(decided) => {
                self.hear_good_news("a decision was taken");
                self.acknowledged
                    .decisions
                    .push((Arc::clone(held), decided.outcome));
                decided.outcome == HeldOutcome::Passed
            }
            // The decision may be on the disk all the same.
            OperatorReply::Refused(DecisionRefusal::Unavailable(_)) if quality == Quality::Good => {
                self.doubtful.push(Arc::clone(held));
                false
            }
            _ => false,
        };
        let may = matches!(quality, Quality::Good | Quality::Bad { text: true });
        assert!(may || !passed, "{held:?} passed with bad answers");
        if passed {
            self.note_passed(held);
        }
        self.counts.refused += u64::from(!passed && quality != Quality::Good);
    }

    pub(super) fn note_passed(&mut self, held: &Held) {
        if let HeldSubject::Moment(moment) = &held.subject {
            self.freed.insert(held.session.to_string());
            let input = moment.data.get("input_hash").and_then(Value::as_str);
            self.pass_start_gate.extend(input.map(str::to_owned));
        } else {
            *self.passed.entry(request_key(held)).or_default() += 1;
        }
    }

    pub(super) fn answer_badly(&mut self) {
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

    pub(super) async fn deny(&mut self) {
        let Some(held) = self.any_held() else { return };
        let ruling = Ruling::Deny {
            reason: "not now".to_owned(),
        };
        let operator = self.bench.runtime.operator_handle();
        let reply = operator.decide(decide(&held, ruling)).await;
        if let OperatorReply::Decided(decided) = reply {
            self.acknowledged.decisions.push((held, decided.outcome));
        }
    }
}
