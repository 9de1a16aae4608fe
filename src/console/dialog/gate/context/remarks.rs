//! Remarks about a request: why it is held, the steward's guidance, the agent and its abilities.

use crate::atlas::document::{GuidanceBlock, GuidanceFormat};
use crate::base::text::{LineFeeds, one_line, sanitize};
use crate::console::text_cells::counted;
use crate::engine::held::Held;
use crate::runtime::snapshot::SessionSummary;

/// A remark about a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Remark {
    pub(super) heading: String,
    pub(super) body: RemarkBody,
}

/// Text and format of a remark. Both are safe to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RemarkBody {
    /// Shown unchanged.
    Plain(String),
    /// Rendered as Markdown.
    Markdown(String),
}

fn plain(heading: impl Into<String>, text: String) -> Remark {
    Remark {
        heading: heading.into(),
        body: RemarkBody::Plain(text),
    }
}

/// Collects all remarks that are known when a request is opened.
pub(super) fn remarks(held: &Held, session: Option<&SessionSummary>) -> Vec<Remark> {
    let mut remarks = Vec::new();
    let mut asker = format!("{}, session {}", one_line(&held.agent), held.session);
    if let Some(intent) = &held.intent {
        asker.push_str(", for: ");
        asker.push_str(&one_line(intent));
    }
    for (index, gate) in held.gates.iter().enumerate() {
        let id = one_line(&gate.name());
        remarks.push(plain(format!("WHY {id}"), one_line(&gate.why)));
        if let Some(guidance) = &gate.guidance {
            remarks.push(Remark {
                heading: format!("GUIDANCE {id}"),
                body: guidance_body(guidance),
            });
        }
        if let Some(answers) = held.answered.get(&index) {
            let answer_texts = answers.iter().map(|(question, answer)| {
                let answer = answer
                    .as_str()
                    .map_or_else(|| answer.to_string(), str::to_owned);
                format!("{}: {}", one_line(question), one_line(&answer))
            });
            let answer_texts: Vec<_> = answer_texts.collect();
            let heading = format!("AGENT'S ANSWERS {id}");
            remarks.push(plain(heading, answer_texts.join("; ")));
        }
    }
    remarks.push(plain("WHO", asker));
    remarks.extend(session.into_iter().flat_map(aspects));
    remarks
}

fn guidance_body(guidance: &GuidanceBlock) -> RemarkBody {
    let text = sanitize(guidance.content.trim_end(), LineFeeds::Keep).text;
    match guidance.format {
        GuidanceFormat::Markdown => RemarkBody::Markdown(text),
        GuidanceFormat::Text | GuidanceFormat::Json | GuidanceFormat::SystemInstruction => {
            RemarkBody::Plain(text)
        }
    }
}

/// Describes a session: its permissions, abilities, contexts and audit counts.
fn aspects(session: &SessionSummary) -> [Remark; 4] {
    let listed = |words: &[String]| match words {
        [] => "none".to_owned(),
        words => words
            .iter()
            .map(|word| one_line(word))
            .collect::<Vec<_>>()
            .join(", "),
    };
    let permissions = if session.allowed.is_empty() && session.denied.is_empty() {
        "not changed by any gate".to_owned()
    } else {
        let (allowed, denied) = (listed(&session.allowed), listed(&session.denied));
        format!("allowed by gates: {allowed}; denied by gates: {denied}")
    };
    let (unlocked, locked) = (listed(&session.unlocked), listed(&session.locked));
    let context = if session.contexts.is_empty() && session.guidance.is_empty() {
        "no context given".to_owned()
    } else {
        let (contexts, guidance) = (listed(&session.contexts), listed(&session.guidance));
        format!("given: {contexts}; guidance: {guidance}")
    };
    let number = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    let actions = counted(number(session.actions), "action");
    let events = counted(number(session.events), "event");
    [
        plain("PERMISSIONS", permissions),
        plain(
            "CAPABILITIES",
            format!("unlocked: {unlocked}; locked: {locked}"),
        ),
        plain("CONTEXT", context),
        plain("AUDIT", format!("{actions} run; {events} recorded")),
    ]
}
