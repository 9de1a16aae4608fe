//! Texts of the line console. Each line makes sense when it is read aloud alone.

use crate::base::clock::Timestamp;
use crate::base::text::{LineFeeds, one_line, sanitize};
use crate::console::dialog::gate::{hidden_chars_text, request_text};
use crate::console::names::action_words;
use crate::console::thread_text;
use crate::engine::command::SettledRequest;
use crate::engine::held::{Gate, Held};
use crate::runtime::snapshot::RuntimeSnapshot;

/// Commands that the operator can type while no question is open.
pub(super) const HELP: &str = "\
list          list the held requests, highest risk first
show c-1      print the whole request
pass c-1      print the request, ask its questions, then ask to confirm
override c-1  like pass, for a request that a policy denies
deny c-1      ask for a reason, then ask to confirm
claim c-1     claim the request (decides nothing)
unclaim c-1   release your claim
operator ann  switch operator (recorded; name not verified)
ack-override  acknowledge overruled denials
ack-broken-chain  acknowledge a broken record, to enable deciding
recent        list the latest decisions
verify        verify the record, or print the progress
stop          stop the verification
help          print this help
quit          quit; held requests stay held
While a question is open: /back cancels it and the request stays held. /again repeats the question.
<< starts an answer of several lines; a line with only a dot ends it.
";

/// Time left until the deadline, as in `4 minutes 5 seconds`.
pub(super) fn time_left_text(held: &Held, now: Timestamp) -> String {
    let seconds = held.deadline.since(now).as_secs();
    let counted = |count: u64, noun: &str| match count {
        0 => None,
        1 => Some(format!("1 {noun}")),
        more => Some(format!("{more} {noun}s")),
    };
    let parts = [
        counted(seconds / 60, "minute"),
        counted(seconds % 60, "second"),
    ];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    if parts.is_empty() {
        return "no time".to_owned();
    }
    parts.join(" ")
}

/// Describes a request in one line.
pub(super) fn request_line(held: &Held, now: Timestamp) -> String {
    let gates: Vec<_> = held.gates.iter().map(Gate::name).collect();
    let asked = match held.joined {
        0 => String::new(),
        more => format!(", requested {} times", more + 1),
    };
    let part = approval_words(held);
    format!(
        "{}: {} risk, {} by {}, at {}{asked}{part}, {} left, then it is denied.",
        held.id,
        held.tier(),
        action_words(held),
        one_line(&held.agent),
        one_line(&gates.join(" and ")),
        time_left_text(held, now),
    )
}

/// Approvals and claim of a request, in words.
fn approval_words(held: &Held) -> String {
    let approved = match held.approval_progress() {
        None => String::new(),
        Some((words, None)) => format!(", {words} approvals"),
        Some((words, Some(by))) => format!(", {words} approvals, by {}", one_line(by)),
    };
    let claim = held.claim.as_ref();
    let claimed = claim.map(|claim| format!(", claimed by {}", one_line(&claim.by)));
    format!("{approved}{}", claimed.unwrap_or_default())
}

/// Returns the word that decides. If another operator claimed the request, the word names that operator.
pub(super) fn deciding_word(held: &Held, operator: &str, verb: &str) -> String {
    match held.claimed_by_other(operator) {
        None => verb.to_owned(),
        Some(by) => format!("{verb} over {}", one_line(by)),
    }
}

/// Asks for the deciding word.
pub(super) fn ask_deciding_word(held: &Held, operator: &str, verb: &str) -> String {
    let claimed = held.claimed_by_other(operator);
    let claimed = claimed.map(|by| format!("{} is claimed by {}. ", held.id, one_line(by)));
    let word = deciding_word(held, operator, verb);
    let does = match verb {
        "pass" => format!("let {} pass", held.id),
        _ => format!("deny {}", held.id),
    };
    let claimed = claimed.unwrap_or_default();
    format!("{claimed}Type {word} to {does}. Any other input leaves the request held.\n")
}

/// Prints a whole request, line by line.
pub(super) fn request_lines(
    held: &Held,
    snapshot: &RuntimeSnapshot,
    now: Timestamp,
) -> Vec<String> {
    let mut lines = vec![request_line(held, now)];
    let mut add = |text: String| {
        let text = sanitize(&text, LineFeeds::Keep).text;
        lines.extend(text.split('\n').map(str::to_owned));
    };
    let intent = held.intent.as_deref().unwrap_or("not given");
    add(format!(
        "Session {}, intent: {}.",
        held.session,
        one_line(intent)
    ));
    if let Some(thread) = thread_text::thread_of_session(snapshot, &held.session) {
        add(format!(
            "Thread: {}.",
            thread_text::thread_lines(thread).join("; ")
        ));
    }
    for gate in &held.gates {
        add(format!(
            "Gate {}: {}.",
            gate.name(),
            gate.why.trim_end_matches('.')
        ));
        if let Some(guidance) = &gate.guidance {
            add(format!("Guidance from the steward: {}", guidance.content));
        }
    }
    let (request, hidden) = request_text(held);
    add("The exact request:".to_owned());
    // The text is escaped already.
    lines.extend(request.split('\n').map(str::to_owned));
    if hidden > 0 {
        lines.push(hidden_chars_text(hidden));
    }
    lines.push("End of the request.".to_owned());
    lines
}

/// Describes the result of a request.
pub(super) fn decision_line(decided: &SettledRequest) -> String {
    let by = match &decided.by {
        Some(by) => format!(" by {}", one_line(by)),
        None => String::new(),
    };
    let reason = match one_line(&decided.detail) {
        empty if empty.is_empty() => String::new(),
        detail => format!(", because: {detail}"),
    };
    format!(
        "{} at {}: {} was {}{by}{reason}.",
        decided.gate,
        decided.at.time_of_day(),
        one_line(&decided.action),
        decided.outcome.as_str(),
    )
}
