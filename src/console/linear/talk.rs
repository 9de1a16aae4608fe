//! The conversation: what was typed last, what is asked now.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::passing::{Passing, Wanted, decide};
use super::words;
use crate::base::clock::Timestamp;
use crate::base::id::GateId;
use crate::base::limits::ARMING;
use crate::base::text::one_line;
use crate::console::app::record::unsound;
use crate::console::dialog::gate::{Care, care};
use crate::console::screen::queue::find;
use crate::engine::command::{Confirmation, Decide, Operate, RecordFault, Reply, Ruling};
use crate::engine::held::Held;
use crate::runtime::snapshot::Snapshot;
use crate::trace::verify::{Progress, Report};

mod acts;
mod alarms;
mod checks;
mod commands;
mod replies;
mod store;

/// What is to be done outside of the conversation.
#[derive(Debug, PartialEq)]
pub(in crate::console) enum Deed {
    /// Decide about a held request.
    Decide(Box<Decide>),
    /// Do something by which nothing passes.
    Operate(Box<Operate>),
    /// Check every chain.
    Verify(Progress),
    /// Leave.
    Leave,
}

/// The conversation.
#[derive(Debug)]
pub(in crate::console) struct Talk {
    snapshot: Arc<Snapshot>,
    /// What was told to be held.
    known: BTreeSet<GateId>,
    /// How many came while something else was asked.
    arrived: usize,
    doing: Doing,
    /// An answer of several lines.
    several: Option<String>,
    /// When the word that decides is asked for. What was typed before was not meant for it.
    arms_at: Option<Timestamp>,
    found: Option<RecordFault>,
    /// The check that is on its way.
    checking: Option<Progress>,
    /// What else is wrong, and what of it has not been told.
    alarms: Arc<[String]>,
    untold: Vec<String>,
    /// Notices that no steward took, as far as it was told.
    unheard: usize,
    out: String,
}

#[derive(Debug)]
enum Doing {
    Nothing,
    Passing(Box<Passing>),
    Denying(Arc<Held>, Option<String>),
    /// On its way to the disk.
    Writing(GateId),
    /// An answer that breaks rules is on its way to the disk; then the questions go on.
    Recording(Box<Passing>),
}

impl Talk {
    pub(in crate::console) fn new(snapshot: Arc<Snapshot>, now: Timestamp) -> Self {
        let mut talk = Self {
            known: snapshot.held.iter().map(|held| held.id.clone()).collect(),
            snapshot,
            arrived: 0,
            doing: Doing::Nothing,
            several: None,
            arms_at: None,
            found: None,
            checking: None,
            alarms: Arc::default(),
            untold: Vec::new(),
            unheard: 0,
            out: String::new(),
        };
        talk.say("CRA console, line by line. Type help to hear what can be typed.");
        talk.list(now);
        talk.prompt(now);
        talk
    }

    /// What was told since the last time.
    pub(in crate::console) fn take(&mut self) -> String {
        std::mem::take(&mut self.out)
    }

    fn say(&mut self, line: &str) {
        self.out.push_str(line);
        self.out.push('\n');
    }

    fn prompt(&mut self, now: Timestamp) {
        self.arms_at = None;
        self.several = None;
        match &mut self.doing {
            Doing::Nothing => {
                if self.arrived > 0 {
                    let more = std::mem::take(&mut self.arrived);
                    let told = format!("{more} more came meanwhile. Type list to hear them.");
                    self.say(&told);
                }
                self.tell_alarms();
                self.out.push_str(self.prompt_text());
            }
            Doing::Passing(passing) => {
                if passing.wanted() == Wanted::Listening {
                    let told = passing.tell();
                    self.out.push_str(&told);
                }
                let told = if passing.wanted() == Wanted::Word {
                    self.arms_at = Some(now.plus(ARMING));
                    passing.review(&self.snapshot.operator)
                } else {
                    passing.prompt(&self.snapshot.operator, now)
                };
                self.out.push_str(&told);
            }
            Doing::Denying(held, None) => {
                let left = words::left(held, now);
                let told = format!(
                    "Why is {} denied? The agent is told. ({left} left)",
                    held.id
                );
                self.say(&told);
            }
            Doing::Denying(held, Some(reason)) => {
                let reason = one_line(reason);
                let told = match reason.as_str() {
                    "" => format!("{} will be denied, without a reason.", held.id),
                    reason => format!("{} will be denied, because: {reason}", held.id),
                };
                self.arms_at = Some(now.plus(ARMING));
                self.say(&told);
            }
            Doing::Writing(_) | Doing::Recording(_) => {}
        }
    }

    /// When something is told without anything having happened.
    pub(in crate::console) fn next_change(&self) -> Option<Timestamp> {
        self.arms_at
    }

    /// Asks for the word that decides, once it is time.
    pub(in crate::console) fn on_tick(&mut self, now: Timestamp) -> Vec<Deed> {
        if self.arms_at.is_some_and(|at| at <= now) {
            self.arms_at = None;
            let told = match &self.doing {
                Doing::Passing(passing) => passing.prompt(&self.snapshot.operator, now),
                Doing::Denying(held, _) => words::ask_word(held, &self.snapshot.operator, "deny"),
                Doing::Nothing | Doing::Writing(_) | Doing::Recording(_) => String::new(),
            };
            self.out.push_str(&told);
        }
        Vec::new()
    }

    /// A line was typed.
    pub(in crate::console) fn on_line(&mut self, line: &str, now: Timestamp) -> Vec<Deed> {
        let line = line.trim_end_matches(['\n', '\r']);
        if self.arms_at.is_some_and(|at| now < at) && line.trim() != "/back" {
            self.say(TOO_EARLY);
            return Vec::new();
        }
        let Some(text) = self.whole_answer(line) else {
            return Vec::new();
        };
        let deeds = match &self.doing {
            Doing::Nothing => self.command(text.trim(), now),
            Doing::Writing(_) | Doing::Recording(_) => {
                let gate = self.written().map(ToString::to_string).unwrap_or_default();
                let told = format!("{gate} is being written. Wait for what comes of it.");
                self.say(&told);
                return Vec::new();
            }
            Doing::Passing(_) | Doing::Denying(..) => self.reply(&text),
        };
        if self.written().is_none() && !deeds.contains(&Deed::Leave) {
            self.prompt(now);
        }
        deeds
    }

    /// An answer of several lines is whole when a line has only a dot.
    fn whole_answer(&mut self, line: &str) -> Option<String> {
        let asked = matches!(self.doing, Doing::Passing(_) | Doing::Denying(_, None));
        match &mut self.several {
            None if asked && line.trim() == "<<" => {
                self.several = Some(String::new());
                self.say("Type the lines, and a dot alone to end.");
                None
            }
            None => Some(line.to_owned()),
            Some(_) if line.trim() == "." => self.several.take(),
            Some(text) => {
                if !text.is_empty() {
                    text.push('\n');
                }
                text.push_str(line);
                None
            }
        }
    }

    fn reply_denying(&mut self, held: Arc<Held>, reason: Option<String>, text: &str) -> Vec<Deed> {
        let Some(reason) = reason else {
            let reason = text.trim().to_owned();
            let needed = care(&held) != Care::Direct && reason.is_empty();
            if needed {
                self.say("A reason is needed.");
            }
            self.doing = Doing::Denying(held, (!needed).then_some(reason));
            return Vec::new();
        };
        if !self.is_word(&held, "deny", text) {
            self.say("It stays held.");
            return self.record_wrong_word(&held, Confirmation::DenyWord, text);
        }
        if !self.may_decide() {
            return Vec::new();
        }
        let ruling = Ruling::Deny { reason };
        let operator = self.snapshot.operator.clone();
        self.write(decide(&held, &operator, Care::Direct, None, ruling))
    }

    fn write(&mut self, decide: Decide) -> Vec<Deed> {
        let told = format!("{} is being written.", decide.gate);
        self.say(&told);
        self.doing = Doing::Writing(decide.gate.clone());
        vec![Deed::Decide(Box::new(decide))]
    }

    /// A newer picture. What is asked is not interrupted by what arrives, but by what it is about.
    pub(in crate::console) fn on_snapshot(
        &mut self,
        snapshot: Arc<Snapshot>,
        now: Timestamp,
    ) -> Vec<Deed> {
        let before = std::mem::replace(&mut self.snapshot, snapshot);
        if before.operator != self.snapshot.operator {
            self.rise(now);
        }
        self.tell_store(&before, now);
        let held = self.snapshot.held.clone();
        let new: Vec<_> = held
            .iter()
            .filter(|held| !self.known.contains(&held.id))
            .collect();
        self.known = held.iter().map(|held| held.id.clone()).collect();
        let about = match &self.doing {
            Doing::Passing(passing) => Some(Arc::clone(&passing.held)),
            Doing::Denying(held, _) => Some(Arc::clone(held)),
            Doing::Nothing | Doing::Writing(_) | Doing::Recording(_) => None,
        };
        if let Some(about) = about {
            self.arrived += new.len();
            self.interrupt(&about, now);
            return Vec::new();
        }
        if self.written().is_some() {
            self.arrived += new.len();
            return Vec::new();
        }
        if !new.is_empty() {
            // A bell, and a line of its own behind the prompt.
            self.out.push_str("\u{7}\n");
            for held in new {
                let told = format!("New: {}", words::line(held, now));
                self.say(&told);
            }
            self.out.push_str(self.prompt_text());
        }
        self.on_notices();
        Vec::new()
    }

    /// Somebody else sits here: what was asked was another's.
    fn rise(&mut self, now: Timestamp) {
        match self.doing {
            Doing::Passing(_) | Doing::Denying(..) => {
                self.doing = Doing::Nothing;
                self.say("Somebody else sits here now. What was typed does not count.");
                self.prompt(now);
            }
            Doing::Nothing | Doing::Writing(_) | Doing::Recording(_) => {}
        }
    }

    /// Ends what is asked when it is no longer what it was.
    fn interrupt(&mut self, about: &Held, now: Timestamp) {
        let current = self.snapshot.held.iter().find(|held| held.id == about.id);
        let what = match current {
            Some(current)
                if current.request_hash == about.request_hash
                    && current.atlas_hash == about.atlas_hash
                    && current.answered.len() == about.answered.len() =>
            {
                return;
            }
            Some(_) => format!("{} has changed. What was typed does not count.", about.id),
            None => {
                let mut decided = self.snapshot.decided.iter();
                let ended = decided.find(|decided| decided.gate == about.id);
                let how = ended.map_or_else(String::new, |ended| words::decided(ended));
                format!("{} is no longer held. {how}", about.id)
            }
        };
        self.doing = Doing::Nothing;
        self.say(&what);
        self.prompt(now);
    }

    /// What became of a decision.
    pub(in crate::console) fn on_reply(
        &mut self,
        gate: &GateId,
        reply: &Reply,
        now: Timestamp,
    ) -> Vec<Deed> {
        if matches!(reply, Reply::Acted) {
            // A wrong confirmation is on record; the question for it stands already.
            return Vec::new();
        }
        if let Some(told) = self.on_recorded(reply) {
            self.say(&one_line(&told));
            self.prompt(now);
            return Vec::new();
        }
        let told = match reply {
            Reply::Decided(decided) => format!("Recorded. {}", words::decided(decided)),
            Reply::Invalid(invalid) => {
                let problems = invalid.problems.iter();
                let problems: Vec<_> = problems.map(|it| it.rules.join("; ")).collect();
                format!(
                    "{gate} is still held, the answers were not taken: {}",
                    problems.join("; ")
                )
            }
            Reply::Approved(_) => format!(
                "Recorded. {gate} has 1 of 2 approvals and is still held: another operator has to pass it too."
            ),
            Reply::Refused(refused) => format!("{gate} was not decided: {refused}"),
            Reply::Started(_)
            | Reply::Ended(_)
            | Reply::Accepted(_)
            | Reply::Allowed(_)
            | Reply::Denied(_)
            | Reply::Asked(_)
            | Reply::Resolved(_)
            | Reply::Consulted(_)
            | Reply::Completed(_)
            | Reply::Acted
            | Reply::Noted(_) => format!("{gate}: nobody can tell what became of it. Type list."),
        };
        self.say(&one_line(&told));
        self.doing = Doing::Nothing;
        self.prompt(now);
        Vec::new()
    }

    /// What a check found.
    pub(in crate::console) fn on_verified(&mut self, report: &Result<Report, String>) -> Vec<Deed> {
        self.checking = None;
        self.found = unsound(report);
        let told = match (&self.found, report) {
            (Some(fault), _) => one_line(&fault.what),
            (None, Err(what)) => one_line(what),
            (None, Ok(report)) => {
                let (chains, events) = (report.chains.len(), report.events());
                let what = match self.snapshot.store.problem() {
                    Some(_) => "What was recorded before holds",
                    None => "The record holds",
                };
                format!("{what}: {chains} chains, {events} events.")
            }
        };
        self.out.push('\n');
        if self.snapshot.store.problem().is_some() {
            self.say("NOT RECORDING: this check says nothing about what was asked since.");
        }
        self.say(&told);
        self.ask_again();
        Vec::new()
    }

    /// Something was told in between: the prompt stands below it again.
    fn ask_again(&mut self) {
        if matches!(self.doing, Doing::Nothing) {
            self.out.push_str(self.prompt_text());
        }
    }

    /// Whether this is the word that decides about a request, as it is by now.
    fn is_word(&self, held: &Held, verb: &str, typed: &str) -> bool {
        let now = find(&self.snapshot.held, &held.id);
        let held = now.map_or(held, |held| held);
        let typed: Vec<_> = typed.split_whitespace().collect();
        typed.join(" ") == words::word(held, &self.snapshot.operator, verb)
    }
}

/// What is said to a word that was typed before it could be meant.
const TOO_EARLY: &str = "That was typed before it was asked for, and does not count.";

/// What is said where nothing can be written.
const ONLY_LOOKS: &str = "This console only looks: it was opened read-only.";
