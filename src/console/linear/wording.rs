//! Texts of the line console. Each line makes sense when it is read aloud alone.

use crate::base::clock::Timestamp;
use crate::base::text::{LineFeeds, one_line, sanitize};
use crate::console::dialog::gate::{hidden_chars_text, request_text};
use crate::console::thread_text;
use crate::engine::command::SettledRequest;
use crate::engine::held::{Gate, Held};
use crate::runtime::snapshot::RuntimeSnapshot;

/// Commands that the operator can type while no question is open.
pub(super) const HELP: &str = "\
list          tells what is held, the riskiest first
show c-1      tells one request whole
pass c-1      tells it whole, asks its questions, and then whether it may pass
override c-1  the same, for a request that a policy denies
deny c-1      asks for a reason, and then whether to deny it
claim c-1     says that you look after it; decides nothing
unclaim c-1   says that you no longer do
operator ann  somebody else takes the chair; the name is recorded, and nothing proves it
ack-override  you know that a denial was overruled
ack-broken-chain  you know that the record is broken: deciding is possible again
recent        tells what was decided lately
verify        checks the record, or tells how far that has come
stop          stops the check
help          tells this
quit          leaves; what is held stays held
While something is asked: /back leaves it undecided, /again tells the question again, and << begins an
answer of several lines that ends with a line that is only a dot.
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
        more => format!(", asked {} times", more + 1),
    };
    let part = part_of(held);
    format!(
        "{}: {} risk, {} for {}, at {}{asked}{part}, {} left, then it is denied.",
        held.id,
        held.tier(),
        one_line(held.action()),
        one_line(&held.agent),
        one_line(&gates.join(" and ")),
        time_left_text(held, now),
    )
}

/// Approvals and claim of a request, in words.
fn part_of(held: &Held) -> String {
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
pub(super) fn ask_word(held: &Held, operator: &str, verb: &str) -> String {
    let claimed = held.claimed_by_other(operator);
    let claimed = claimed.map(|by| format!("{} is claimed by {}. ", held.id, one_line(by)));
    let word = deciding_word(held, operator, verb);
    let does = match verb {
        "pass" => format!("let {} pass", held.id),
        _ => format!("deny {}", held.id),
    };
    let claimed = claimed.unwrap_or_default();
    format!("{claimed}Type {word} to {does}. Anything else leaves it held.\n")
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
    let intent = held.intent.as_deref().unwrap_or("not said");
    add(format!(
        "Session {}, for: {}.",
        held.session,
        one_line(intent)
    ));
    if let Some(thread) = thread_text::thread_of_session(snapshot, &held.session) {
        add(format!(
            "Conversation, {}.",
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
            add(format!("The steward says: {}", guidance.content));
        }
    }
    let (request, hidden) = request_text(held);
    add("The request, exactly as it will run:".to_owned());
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
    let why = match one_line(&decided.detail) {
        empty if empty.is_empty() => String::new(),
        detail => format!(", because: {detail}"),
    };
    format!(
        "{} at {}: {} was {}{by}{why}.",
        decided.gate,
        decided.at.time_of_day(),
        one_line(&decided.action),
        decided.outcome.as_str(),
    )
}
