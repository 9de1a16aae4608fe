//! One request that an operator is about to pass: the answers so far, and the input that is still missing.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::wording;
use crate::atlas::document::{InvalidAnswerAction, ResponseType};
use crate::atlas::model::CompiledQuestion;
use crate::base::clock::Timestamp;
use crate::base::text::one_line;
use crate::console::dialog::gate::{
    CHALLENGE_CHARS, PassCare, PassProof, PlannedAnswers, answers_challenge, care_for_request,
    justified_by_answers, plan_records, shown_action,
};
use crate::console::names::{event_words, field_words};
use crate::engine::answer::{JudgedAnswer, judge_answer};
use crate::engine::approval::Approver;
use crate::engine::command::{Confirmation, DecisionRequest, Ruling};
use crate::engine::held::Held;
use crate::runtime::snapshot::RuntimeSnapshot;

/// Lines of a request that are printed at a time.
pub(super) const PAGE: usize = 40;

/// State of passing one request.
#[derive(Debug)]
pub(super) struct PendingPass {
    pub(super) held: Arc<Held>,
    /// Lines of the request that are not printed yet, last line first.
    unprinted: Vec<String>,
    /// All open questions, each with the index of its gate.
    questions: Vec<(usize, CompiledQuestion)>,
    /// Accepted answers, in the order of the questions.
    answers: Vec<Value>,
    proofs: Vec<PassProof>,
    shown: usize,
    reason: Option<String>,
}

/// Input that the operator has to give next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NextInput {
    /// Enter, to print the rest of the request.
    Listening,
    Answer,
    Proof(PassProof),
    /// The word that passes the request.
    Word,
}

/// Result of checking the operator's input.
#[derive(Debug, PartialEq)]
pub(super) enum InputResult {
    /// The input was accepted.
    Yes,
    /// The input was accepted, with a message for the operator.
    With(String),
    /// The input was rejected and has no other effect.
    No(String),
    /// An answer that breaks its rules, one map per gate. It is recorded and counted, and may refuse the
    /// request.
    Breaks(String, Vec<BTreeMap<String, Value>>),
    /// A wrong confirmation. It is recorded.
    Wrong(String, Confirmation, String),
}

impl PendingPass {
    pub(super) fn new(held: Arc<Held>, snapshot: &RuntimeSnapshot, now: Timestamp) -> Self {
        let gates = held.gates.iter().enumerate();
        let open = gates.filter(|(at, _)| !held.answered.contains_key(at));
        let questions = open.flat_map(|(at, gate)| {
            let questions = gate.questions.iter().cloned();
            questions.map(move |question| (at, question))
        });
        Self {
            unprinted: wording::request_lines(&held, snapshot, now)
                .into_iter()
                .rev()
                .collect(),
            questions: questions.collect(),
            answers: Vec::new(),
            proofs: care_for_request(&held).required_proofs().to_vec(),
            shown: 0,
            reason: None,
            held,
        }
    }

    pub(super) fn next_input(&self) -> NextInput {
        if !self.unprinted.is_empty() {
            return NextInput::Listening;
        }
        if self.answers.len() < self.questions.len() {
            return NextInput::Answer;
        }
        match self.proofs.get(self.shown) {
            Some(proof) => NextInput::Proof(*proof),
            None => NextInput::Word,
        }
    }

    /// Returns the next page of the request.
    pub(super) fn next_page(&mut self) -> String {
        let mut text = String::new();
        for _ in 0..PAGE {
            let Some(line) = self.unprinted.pop() else {
                break;
            };
            text.push_str(&line);
            text.push('\n');
        }
        text
    }

    /// Returns the text that asks for the next input.
    pub(super) fn prompt(&self, operator: &str, now: Timestamp) -> String {
        let left = wording::time_left_text(&self.held, now);
        match self.next_input() {
            NextInput::Listening => {
                let rest = self.unprinted.len();
                format!("{rest} more lines. Press Enter to print them, or type /back.\n")
            }
            NextInput::Answer => match self.questions.get(self.answers.len()) {
                Some((_, question)) => self.question_text(question, &left),
                None => String::new(),
            },
            NextInput::Proof(PassProof::Why) => format!("Enter a justification. ({left} left)\n"),
            NextInput::Proof(PassProof::Hash) => {
                let hash = self.held.request_hash.short(CHALLENGE_CHARS);
                let spelt: Vec<_> = hash.chars().map(String::from).collect();
                let spelt = spelt.join(" ");
                format!(
                    "Type the first {CHALLENGE_CHARS} characters of the request's hash: {spelt}\n"
                )
            }
            NextInput::Proof(PassProof::Action) => {
                let action = shown_action(&self.held);
                format!("Type the name of the action in full: {action}\n")
            }
            NextInput::Word => {
                let word = wording::ask_deciding_word(&self.held, operator, "pass");
                format!("{} ({left} left)\n", word.trim_end())
            }
        }
    }

    fn question_text(&self, question: &CompiledQuestion, left: &str) -> String {
        let (number, count) = (self.answers.len() + 1, self.questions.len());
        let kind = match question.response_type() {
            ResponseType::Text => "text",
            ResponseType::Acknowledgment => "the word understood",
            ResponseType::Choice => "the number or the text of an option",
            ResponseType::Number => "a number",
            ResponseType::Boolean => "yes or no",
            ResponseType::Json => "JSON",
        };
        let must = if question.required() {
            ""
        } else {
            ", or leave it empty"
        };
        let mut text = format!(
            "Question {number} of {count}: {}\nAnswer with {kind}{must}. ({left} left)\n",
            one_line(question.text()).trim()
        );
        let mut add = |line: String| {
            text.push_str(&line);
            text.push('\n');
        };
        if let Some(hint) = question.hint() {
            add(format!("Hint: {}", one_line(hint)));
        }
        for (number, option) in (1..).zip(question.options()) {
            add(format!("Option {number}: {}", one_line(option)));
        }
        if question.sensitive() {
            add("Your input is visible here; cra stores only a salted hash of it.".to_owned());
        }
        text
    }

    /// Checks and stores an answer.
    pub(super) fn submit_answer(&mut self, typed: &str) -> InputResult {
        let Some((at, question)) = self.questions.get(self.answers.len()) else {
            return InputResult::Yes;
        };
        let typed = parse_typed_answer(question, typed);
        let judged = judge_answer(question, &typed);
        let blank = typed.as_str().is_some_and(|text| text.trim().is_empty());
        let mut result = InputResult::Yes;
        if !judged.is_valid() {
            match question.on_invalid() {
                InvalidAnswerAction::Retry | InvalidAnswerAction::Block if blank => {
                    return InputResult::No(format!("Not accepted.\n{}", rules_text(&judged)));
                }
                InvalidAnswerAction::Retry | InvalidAnswerAction::Block => {
                    let mut answers = vec![BTreeMap::new(); self.held.gates.len()];
                    if let Some(of_gate) = answers.get_mut(*at) {
                        of_gate.insert(question.id().to_owned(), typed);
                    }
                    return InputResult::Breaks(
                        format!("Not accepted.\n{}", rules_text(&judged)),
                        answers,
                    );
                }
                InvalidAnswerAction::WarnAndContinue => {
                    let rules = rules_text(&judged);
                    result = InputResult::With(format!(
                        "Warning: accepted, but the answer breaks a rule.\n{rules}"
                    ));
                }
                InvalidAnswerAction::LogAndContinue => {}
            }
        }
        self.answers.push(typed);
        if self.answers.len() == self.questions.len() && self.has_justification() {
            self.proofs.retain(|proof| *proof != PassProof::Why);
        }
        result
    }

    /// Replaces the request with its newer state after an invalid answer was recorded.
    pub(super) fn update_held(&mut self, held: Held) {
        self.held = Arc::new(held);
    }

    /// Returns true if an answer states in words why the request may pass.
    fn has_justification(&self) -> bool {
        let answered = self.questions.iter().zip(&self.answers);
        answered.into_iter().any(|((_, question), answer)| {
            let text = question.response_type() == ResponseType::Text && !question.sensitive();
            text && answer.as_str().is_some_and(|said| !said.trim().is_empty())
        })
    }

    /// Checks a typed confirmation.
    pub(super) fn submit_proof(&mut self, proof: PassProof, typed: &str) -> InputResult {
        let fits = match proof {
            PassProof::Why => !typed.trim().is_empty(),
            PassProof::Hash => {
                let typed: String = typed.split_whitespace().collect();
                answers_challenge(&typed, &self.held.request_hash)
            }
            PassProof::Action => typed.trim() == shown_action(&self.held),
        };
        if !fits {
            let (message, wanted) = match proof {
                PassProof::Why => ("A justification is required.\n", None),
                PassProof::Hash => (
                    "That does not match the request's hash.\n",
                    Some(Confirmation::RequestHash),
                ),
                PassProof::Action => (
                    "That does not match the action's name.\n",
                    Some(Confirmation::Action),
                ),
            };
            let message = message.to_owned();
            return match wanted.filter(|_| !typed.trim().is_empty()) {
                Some(wanted) => InputResult::Wrong(message, wanted, typed.to_owned()),
                None => InputResult::No(message),
            };
        }
        if proof == PassProof::Why {
            self.reason = Some(typed.trim().to_owned());
        }
        self.shown += 1;
        InputResult::Yes
    }

    /// Describes the records that passing the request will write.
    pub(super) fn review_text(&self, operator: &str) -> String {
        let by = Approver {
            name: operator,
            method: care_for_request(&self.held).method(),
            justification: self.reason.as_deref(),
            first_approver: None,
        };
        let mut text = match self.held.approval_progress() {
            None => "If you pass the request, cra records:\n".to_owned(),
            Some((_, None)) => {
                "This is the first of two approvals. The request stays held, and cra records:\n"
                    .to_owned()
            }
            Some((_, Some(first))) => format!(
                "This is the second of two approvals, after {}. If you pass the request, cra records:\n",
                one_line(first)
            ),
        };
        let records = plan_records(&self.held, by, |at| self.planned_answers(at));
        for justification in justified_by_answers(&records) {
            text.push_str("Justification (your answers): ");
            text.push_str(&one_line(justification));
            text.push('\n');
        }
        for record in records {
            text.push_str(&format_record(&record.event_type, &record.fields));
        }
        text
    }

    fn planned_answers(&self, gate: usize) -> PlannedAnswers {
        let mut planned = PlannedAnswers::default();
        for ((at, question), typed) in self.questions.iter().zip(&self.answers) {
            if *at == gate {
                planned.add(question, typed);
            }
        }
        planned
    }

    /// Builds the decision that passes the request.
    pub(super) fn pass_decision(&self, operator: &str) -> DecisionRequest {
        let mut answers = vec![BTreeMap::new(); self.held.gates.len()];
        for ((gate, question), typed) in self.questions.iter().zip(&self.answers) {
            let blank = typed.as_str().is_some_and(|text| text.trim().is_empty());
            if let (Some(map), false) = (answers.get_mut(*gate), blank) {
                map.insert(question.id().to_owned(), typed.clone());
            }
        }
        pass_decision(
            &self.held,
            operator,
            care_for_request(&self.held),
            self.reason.clone(),
            Ruling::Pass { answers },
        )
    }
}

/// Builds a decision that is bound to the hashes of this request.
pub(super) fn pass_decision(
    held: &Held,
    operator: &str,
    care: PassCare,
    justification: Option<String>,
    ruling: Ruling,
) -> DecisionRequest {
    DecisionRequest {
        gate: held.id.clone(),
        operator: operator.to_owned(),
        method: care.method().to_owned(),
        request_hash: held.request_hash,
        atlas_hash: held.atlas_hash,
        justification,
        ruling,
    }
}

/// Converts typed input to the value that is sent: the option of a typed number, or else the text.
fn parse_typed_answer(question: &CompiledQuestion, typed: &str) -> Value {
    let typed = typed.trim_end_matches(['\n', '\r']);
    if question.response_type() == ResponseType::Choice && !typed.trim().is_empty() {
        let options = question.options();
        let exact = options.iter().any(|option| option == typed.trim());
        let number = typed.trim().parse::<usize>().ok();
        let option = number.and_then(|number| options.get(number.checked_sub(1)?));
        if let (false, Some(option)) = (exact, option) {
            return Value::from(option.as_str());
        }
    }
    Value::from(typed)
}

/// Lists all rules, and for each if the answer keeps it.
fn rules_text(judged: &JudgedAnswer) -> String {
    let mut text = String::new();
    for rule in &judged.rules {
        let word = if rule.kept { "Met" } else { "Not met" };
        text.push_str(word);
        text.push_str(": ");
        text.push_str(&one_line(&rule.text));
        text.push('\n');
    }
    text
}

fn format_record(event_type: &str, fields: &Map<String, Value>) -> String {
    let fields = fields.iter().map(|(name, value)| {
        let value = one_line(&value.to_string());
        format!("  {}: {value}\n", field_words(name))
    });
    let fields: String = fields.collect();
    format!("{}\n{fields}", event_words(event_type))
}
