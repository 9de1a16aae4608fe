//! Parsed snapshot file.

use serde::Serialize;
use serde_json::Value;

use super::json_view::{JsonView, SnapshotFault, SnapshotFaults};
use crate::base::json;
use crate::base::limits::{MAX_SNAPSHOT_BYTES, MAX_SNAPSHOT_ITEMS};
use crate::base::text::one_line;

mod parts;

pub use parts::*;

/// Reason why a file cannot be used for reconstruction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// The file is too large.
    #[error("{found} bytes exceed the limit of {MAX_SNAPSHOT_BYTES}")]
    TooLarge {
        /// Size of the file.
        found: usize,
    },
    /// The file is not UTF-8 text.
    #[error("not UTF-8: byte {at} is invalid")]
    NotText {
        /// Position of the invalid byte.
        at: usize,
    },
    /// The file is not a JSON object.
    #[error("not a JSON object: {what}")]
    NotJson {
        /// Description of the content.
        what: String,
    },
    /// The file does not state its version.
    #[error("`checkpoint_metadata.version` is missing, so the format is unknown")]
    NoVersion,
    /// The version is not supported.
    #[error("version `{found}` is not supported, expected 2.x")]
    Version {
        /// The version.
        found: String,
    },
}

impl SnapshotError {
    /// Help for the user: how to resolve the error.
    #[must_use]
    pub fn help(&self) -> &'static str {
        match self {
            Self::TooLarge { .. } => "move the content of artifacts to separate files",
            Self::NotText { .. } => "save the file as UTF-8",
            Self::NotJson { .. } => "write a snapshot file with `cra snapshot SESSION`",
            Self::NoVersion => {
                "if the file has format 2, add `\"checkpoint_metadata\": {\"version\": \"2.0\"}`"
            }
            Self::Version { .. } => {
                "3.x and 4.x files open with warnings; save older files in format 2.0"
            }
        }
    }
}

/// State of a conversation according to the file.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[expect(
    missing_docs,
    reason = "the fields have the names of the snapshot format"
)]
pub struct ConversationSnapshot {
    pub version: String,
    pub later: bool,
    pub format: Option<String>,
    pub checkpoint_type: Option<String>,
    pub status: Option<String>,
    pub session_id: Option<String>,
    pub phase: Option<String>,
    pub completion: Option<f64>,
    pub blocking_issue: Option<Blocker>,
    pub next_major_step: Option<String>,
    pub stage: Option<String>,
    pub last_major_activity: Option<String>,
    pub momentum: Option<String>,
    pub ready: Option<bool>,
    pub question: Option<String>,
    pub question_type: Option<String>,
    pub question_priority: Option<String>,
    pub question_blocking: Option<Blocker>,
    pub user_framing: Option<String>,
    pub my_confidence: Option<(ConfidenceLevel, String)>,
    pub confidence_note: Option<String>,
    /// Stakes of the critical question, if the file states them.
    pub stakes: Vec<String>,
    /// Difficulties of the critical question, if the file states them.
    pub difficulty: Vec<String>,
    /// Possible answers to the critical question, if the file names any.
    pub alternatives: Vec<String>,
    pub start_topic: Option<String>,
    /// Current subject, if the file states it.
    pub subject: Option<String>,
    pub pivots: Vec<Pivot>,
    pub decisions: Vec<SnapshotDecision>,
    pub insights: Vec<Insight>,
    pub open_questions: Vec<OpenQuestion>,
    pub next_steps: Vec<NextStep>,
    pub deferred: Vec<DeferredItem>,
    pub tradeoffs: Vec<Tradeoff>,
    /// Finished work according to the file.
    pub completed: Vec<String>,
    pub artifacts: Vec<Artifact>,
    pub goal: Option<String>,
    pub needs: Vec<String>,
    pub style: Option<String>,
    pub preference: Option<String>,
    pub values: Vec<String>,
    pub depth: Option<String>,
    pub reasoning_style: Option<String>,
    pub appreciates: Vec<String>,
    pub comfortable_with: Vec<String>,
    pub collaboration: Option<String>,
    pub what_works: Vec<String>,
    pub communication_pattern: Option<String>,
    /// State of the conversation's summary, if it is frozen or has proposals held back.
    pub conversation: Option<ConversationState>,
    /// Faults found in the file.
    pub faults: Vec<SnapshotFault>,
}

impl ConversationSnapshot {
    /// Parses a file.
    ///
    /// # Errors
    /// When it is not a snapshot file, or its version is not supported.
    pub fn read(text: &[u8]) -> Result<Self, SnapshotError> {
        if text.len() > MAX_SNAPSHOT_BYTES {
            return Err(SnapshotError::TooLarge { found: text.len() });
        }
        // Some editors write a byte order mark.
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        let text = std::str::from_utf8(text).map_err(|error| SnapshotError::NotText {
            at: error.valid_up_to(),
        })?;
        let not_json = |what: String| SnapshotError::NotJson {
            what: one_line(&what),
        };
        let value: Value = json::read(text.as_bytes()).map_err(|error| not_json(error.detail()))?;
        if !value.is_object() {
            return Err(not_json("found a list or a single value".to_owned()));
        }
        Self::of(&value)
    }

    fn of(value: &Value) -> Result<Self, SnapshotError> {
        let faults = SnapshotFaults::default();
        let file = JsonView::root(value, &faults);
        let metadata = file.at("checkpoint_metadata").expect_object();
        let version = metadata.at("version").text();
        let version = version.ok_or(SnapshotError::NoVersion)?;
        let major = version.trim_start_matches('v').split('.').next();
        let later = match major {
            Some("2") => false,
            Some("3" | "4") => true,
            Some(_) | None => {
                let found = version.chars().take(40).collect();
                return Err(SnapshotError::Version { found });
            }
        };
        let mut snapshot = Self {
            version: version.trim_start_matches('v').to_owned(),
            later,
            format: metadata.at("format").text(),
            checkpoint_type: metadata.at("checkpoint_type").text(),
            status: metadata.at("status").text(),
            session_id: metadata.at("session_id").text(),
            subject: metadata.first(&["subject", "project"]).text(),
            ..Self::default()
        };
        snapshot.read_position(&file);
        snapshot.read_question(&file);
        snapshot.read_history(&file);
        snapshot.read_artifacts(&file);
        snapshot.read_person(&file);
        snapshot.read_future(&file);
        snapshot.faults = faults.into_inner();
        snapshot.faults.truncate(MAX_SNAPSHOT_ITEMS);
        Ok(snapshot)
    }

    fn read_position(&mut self, file: &JsonView<'_>) {
        let state = file.at("session_state").expect_object();
        self.phase = state.at("phase").text();
        let completion = state.at("completion_percentage");
        self.completion = completion.number().filter(|number| {
            let within = (0.0..=100.0).contains(number);
            if !within {
                completion.add_fault("must be between 0 and 100");
            }
            within
        });
        self.blocking_issue = Blocker::read(&state.at("blocking_issue"));
        self.next_major_step = state.at("next_major_step").text();
        let position = file.at("current_position").expect_object();
        self.stage = position.at("stage").text();
        self.last_major_activity = position.at("last_major_activity").text();
        self.momentum = position.at("momentum").text();
        self.ready = position.at("readiness_for_implementation").boolean();
        let subject = position.first(&["subject", "topic", "focus"]).text();
        self.subject = self.subject.take().or(subject);
    }

    fn read_question(&mut self, file: &JsonView<'_>) {
        let question = file.at("critical_question").expect_object();
        self.question = question.at("question").text();
        self.question_type = question.at("type").text();
        self.question_priority = question.at("priority").text();
        self.question_blocking = Blocker::read(&question.at("blocking"));
        self.user_framing = question.at("user_framing").text();
        self.my_confidence = ConfidenceLevel::read(&question.at("my_confidence"));
        self.confidence_note = question.at("confidence_note").text();
        self.stakes = question.first(&["stakes", "at_stake", "impact"]).texts();
        let difficulty = ["difficulty", "what_makes_it_hard", "why_hard"];
        self.difficulty = question.first(&difficulty).texts();
        let alternatives = ["alternatives", "approaches", "candidate_approaches"];
        self.alternatives = question.first(&alternatives).texts();
    }

    fn read_history(&mut self, file: &JsonView<'_>) {
        let journey = file.at("intellectual_journey").expect_object();
        self.start_topic = journey.at("start_topic").text();
        let subject = journey.first(&["current_topic", "current_focus"]).text();
        self.subject = self.subject.take().or(subject);
        self.pivots = items(&journey.at("key_pivots"), |entry| {
            let (from, to) = (entry.at("from").text(), entry.at("to").text());
            let insight = entry.at("insight").text();
            (from.is_some() || to.is_some() || insight.is_some()).then_some(Pivot {
                from,
                to,
                insight,
            })
        });
        self.decisions = items(&file.at("decisions_made"), |entry| {
            Some(SnapshotDecision {
                decision: entry.at("decision").text()?,
                confidence: ConfidenceLevel::read(&entry.at("confidence")),
                rationale: entry.at("rationale").text(),
                rejected: comma_list(&entry.at("alternatives_rejected")),
                needs_revision: entry.at("needs_revision").boolean().unwrap_or(false),
                status: entry.at("status").text(),
                decided_by: entry.at("decided_by").text(),
            })
        });
        self.insights = entries(&file.at("key_insights"), |_, entry| {
            Some(Insight {
                insight: entry.own_text().or_else(|| entry.at("insight").text())?,
                importance: entry.at("importance").text(),
                status: entry.at("status").text(),
                led_to: entry.at("led_to").text(),
            })
        });
        self.open_questions = entries(&file.at("open_questions"), |_, entry| {
            Some(OpenQuestion {
                question: entry.own_text().or_else(|| entry.at("question").text())?,
                priority: entry.first(&["priority", "importance"]).text(),
                related_to: entry.at("related_to").text(),
            })
        });
        let completed = file.first(&["work_completed", "work_completed_this_session"]);
        self.completed = entries(&completed, |name, entry| name.or_else(|| entry.own_text()));
    }

    fn read_artifacts(&mut self, file: &JsonView<'_>) {
        let artifacts = file.first(&["artifacts_created", "artifacts_created_this_session"]);
        self.artifacts = items(&artifacts, |entry| {
            Some(Artifact {
                id: entry.at("id").text()?,
                title: entry.at("title").text(),
                kind: entry.at("type").text(),
                status: entry.at("status").text(),
                retrieve_for: entry.at("retrieve_for").texts(),
                key_sections: entry.at("key_sections").texts(),
                path: entry.at("path").text(),
                content: match entry.at("content").raw() {
                    Some(Value::String(content)) => Some(content.clone()),
                    Some(_) | None => None,
                },
            })
        });
    }

    fn read_person(&mut self, file: &JsonView<'_>) {
        let profile = file.at("user_profile").expect_object();
        self.read_goals(&profile.at("goals"));
        let approach = profile.at("approach").expect_object();
        self.style = approach.at("style").text();
        self.preference = approach.at("preference").text();
        self.values = approach.at("values").texts();
        let calibration = profile.at("communication_calibration").expect_object();
        self.depth = calibration.at("preferred_depth").text();
        self.reasoning_style = calibration.at("reasoning_style").text();
        self.appreciates = calibration.at("appreciates").texts();
        self.comfortable_with = calibration.at("comfortable_with").texts();
        self.collaboration = calibration.at("collaboration_mode").text();
        let dynamics = file.at("conversation_dynamics").expect_object();
        self.what_works = dynamics.at("what_works").texts();
        self.communication_pattern = dynamics.at("communication_pattern").text();
        self.conversation = ConversationState::read(&file.at("conversation_state"));
    }

    /// Reads goals: an object, or a list ordered by importance.
    fn read_goals(&mut self, goals: &JsonView<'_>) {
        if goals.raw().is_some_and(Value::is_array) {
            let mut listed = goals.texts().into_iter();
            self.goal = listed.next();
            self.needs = listed.collect();
            return;
        }
        if goals.raw().is_some_and(|goals| !goals.is_object()) {
            goals.record_wrong_type::<()>("an object");
        }
        self.goal = goals.at("primary").text();
        self.needs = goals.at("key_needs").texts();
    }

    fn read_future(&mut self, file: &JsonView<'_>) {
        let steps = file.first(&["next_steps", "next_session_options"]);
        self.next_steps = list_entries(&steps, |entry| {
            let step = entry.first(&["step", "option", "action"]).text();
            Some(NextStep {
                step: entry.own_text().or(step)?,
                high: is_high(&entry.at("priority")),
                kind: entry.at("type").text(),
                purpose: entry.first(&["purpose", "rationale", "reason"]).text(),
                questions: entry.at("questions_to_address").texts(),
                alternative_to: entry.at("alternative_to").text(),
            })
        });
        let deferred = file.first(&["deferred_items", "deferred_from_previous_session"]);
        self.deferred = entries(&deferred, |name, entry| {
            let item = entry.own_text().or_else(|| entry.at("item").text());
            Some(DeferredItem {
                item: item.or(name)?,
                reason: entry.at("reason").text(),
                until: entry.at("defer_until").text(),
            })
        });
        let tradeoffs = file.at("tradeoffs_identified");
        let tradeoffs = tradeoffs.list();
        let tradeoffs = tradeoffs.iter().take(MAX_SNAPSHOT_ITEMS);
        self.tradeoffs = tradeoffs.filter_map(Tradeoff::read).collect();
    }

    /// Possible next steps: those that the file lists, else the parts of a next major step such as
    /// `explore_a OR review_b`.
    #[must_use]
    pub fn options(&self) -> Vec<NextStep> {
        if !self.next_steps.is_empty() {
            return self.next_steps.clone();
        }
        let all = self.next_major_step.iter();
        let steps = all.flat_map(|step| step.split(" OR "));
        let steps = steps.flat_map(|step| step.split(" or "));
        let steps = steps.map(str::trim).filter(|step| !step.is_empty());
        let step = |step: &str| NextStep {
            step: step.to_owned(),
            high: true,
            kind: None,
            purpose: None,
            questions: Vec::new(),
            alternative_to: None,
        };
        steps.map(step).collect()
    }

    /// Description of the block, if a question blocks.
    #[must_use]
    pub fn blocked(&self) -> Option<String> {
        let what = self.blocking_issue.as_ref()?.what()?;
        Some(what.first().cloned().unwrap_or_else(|| {
            let question = self.question.clone();
            question.unwrap_or_else(|| "an issue that the file does not name".to_owned())
        }))
    }

    /// True if there are several steps of the highest priority.
    #[must_use]
    pub fn has_several_options(&self) -> bool {
        self.options().iter().filter(|step| step.high).count() >= 2
    }
}

/// Items of a list of objects that have the required field. Others are recorded as faults.
fn items<T>(list: &JsonView<'_>, read: impl Fn(&JsonView<'_>) -> Option<T>) -> Vec<T> {
    let all = list.list().into_iter();
    let all = all.map(|item| (None, item.expect_object())).collect();
    keep_valid(list, all, |_, item| read(item))
}

/// Items of a list of objects or texts that have the required field.
fn list_entries<T>(list: &JsonView<'_>, read: impl Fn(&JsonView<'_>) -> Option<T>) -> Vec<T> {
    let all = list.list().into_iter();
    let all = all
        .map(|item| (None, require_object_or_text(item)))
        .collect();
    keep_valid(list, all, |_, item| read(item))
}

/// Items of a list, or of an object whose fields are the items by name, that have the required field.
fn entries<T>(
    list: &JsonView<'_>,
    read: impl Fn(Option<String>, &JsonView<'_>) -> Option<T>,
) -> Vec<T> {
    let all = list.entries().into_iter();
    let all = all
        .map(|(name, item)| (name, require_object_or_text(item)))
        .collect();
    keep_valid(list, all, read)
}

/// Records a fault if the item is neither an object nor a text.
fn require_object_or_text(item: JsonView<'_>) -> JsonView<'_> {
    match item.raw() {
        Some(Value::String(_)) => item,
        Some(_) | None => item.expect_object(),
    }
}

fn keep_valid<T>(
    list: &JsonView<'_>,
    all: Vec<(Option<String>, JsonView<'_>)>,
    read: impl Fn(Option<String>, &JsonView<'_>) -> Option<T>,
) -> Vec<T> {
    if all.len() > MAX_SNAPSHOT_ITEMS {
        let found = all.len();
        list.add_fault(&format!(
            "has {found} entries; only the first {MAX_SNAPSHOT_ITEMS} are used"
        ));
    }
    let items = all.into_iter().take(MAX_SNAPSHOT_ITEMS);
    let items = items.filter_map(|(name, item)| {
        let is_object = item.raw().is_some_and(Value::is_object);
        let read = read(name, &item);
        if read.is_none() && is_object {
            item.add_fault("has no description");
        }
        read
    });
    items.collect()
}

/// A list of texts, or one text with commas between them.
fn comma_list(look: &JsonView<'_>) -> Vec<String> {
    match look.own_text() {
        Some(text) => {
            let texts = text.split(", ").map(str::trim);
            let texts = texts.filter(|text| !text.is_empty());
            texts.map(str::to_owned).collect()
        }
        None => look.texts(),
    }
}

fn is_high(priority: &JsonView<'_>) -> bool {
    match priority.raw() {
        Some(Value::Number(number)) => number.as_f64() == Some(1.0),
        Some(Value::String(word)) => {
            matches!(
                word.trim().to_lowercase().as_str(),
                "1" | "high" | "critical"
            )
        }
        Some(_) | None => false,
    }
}
