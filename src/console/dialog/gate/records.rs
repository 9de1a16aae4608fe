//! What passing a request writes, before it is written.

use serde_json::{Map, Value};

use crate::engine::approval::{self, Approver};
use crate::engine::held::Held;
use crate::trace::event::Payload;

/// What the record has in the place of a sensitive answer.
pub(crate) const HASHED: &str = "sha256, salted";

/// Every record that passing a request writes about its gates, as the engine makes them. `answers` are
/// those to a gate, by its place.
pub(crate) fn records_of(
    held: &Held,
    operator: Approver<'_>,
    answers: impl Fn(usize) -> Map<String, Value>,
) -> Vec<Payload> {
    let given: Vec<_> = (0..held.gates.len()).map(&answers).collect();
    if !held.approvers().is_one() && held.first_approval().is_none() {
        return first_of_two(held, operator, &given);
    }
    let operator = Approver {
        first: held.first_approval().map(|first| first.by.as_str()),
        ..operator
    };
    let agent = format!("agent {}", held.agent);
    let (mut approvals, mut passes, mut responses) = (Vec::new(), Vec::new(), Vec::new());
    for (at, gate) in held.gates.iter().enumerate() {
        let answered = held.answered.contains_key(&at);
        let answers = (!answered).then(|| answers(at));
        let by = if answered {
            Approver {
                name: &agent,
                method: "agent",
                why: None,
                first: None,
            }
        } else {
            operator
        };
        if let Some(answers) = &answers {
            responses.push(approval::response(gate, answers.clone(), by).into());
        }
        approvals.extend(approval::approval(held, gate, answers.as_ref(), by));
        passes.push(approval::passed(gate, gate.effects.inject.clone(), by).into());
    }
    // What is signed comes first on the sheet, whatever is written first.
    approvals
        .into_iter()
        .chain(passes)
        .chain(responses)
        .collect()
}

/// What the first of two approvals writes. Nothing is passed by it.
fn first_of_two(held: &Held, by: Approver<'_>, given: &[Map<String, Value>]) -> Vec<Payload> {
    let why = approval::said(held, |at| given.get(at), by.why).map(str::to_owned);
    let open = || {
        let gates = held.gates.iter().zip(given).enumerate();
        gates.filter(|(at, _)| !held.answered.contains_key(at))
    };
    let approved =
        open().map(|(_, (gate, _))| approval::approved(held, gate, why.clone(), by).into());
    let responses =
        open().map(|(_, (gate, answers))| approval::response(gate, answers.clone(), by).into());
    approved.chain(responses).collect()
}
