//! Tests of the outline: the tree, folding, and memory use.

use serde_json::json;

use super::*;
use crate::trace::replay::tests::event;

/// An event in its own span below another event.
fn below(sequence: u64, parent: u64, event_type: &str) -> Event {
    let mut event = event(sequence, event_type, json!({}));
    event.span_id = format!("span-{sequence}").parse().unwrap();
    event.parent_span_id = (sequence > 0).then(|| format!("span-{parent}").parse().unwrap());
    event
}

/// A session with an action, a gate below it, and a second action.
fn story() -> Vec<Event> {
    let mut gate = below(3, 1, "checkpoint_triggered");
    gate.payload.insert("mode".to_owned(), json!("blocking"));
    vec![
        below(0, 0, "session_started"),
        below(1, 0, "action_attempted"),
        below(2, 1, "policy_checked"),
        gate,
        below(4, 3, "checkpoint_passed"),
        below(5, 0, "action_attempted"),
        below(6, 1, "action_completed"),
    ]
}

fn outline(events: &[Event], end: u64) -> Outline {
    let mut outline = Outline::default();
    outline.extend(&OutlineWindow::of(events, end), end);
    outline
}

fn rows(outline: &Outline) -> Vec<u32> {
    let all = || (0..u32::try_from(outline.len()).unwrap()).collect();
    outline.visible_rows().map_or_else(all, <[u32]>::to_vec)
}

#[test]
fn an_entry_takes_24_bytes() {
    assert_eq!(size_of::<OutlineEntry>(), 24);
}

#[test]
fn events_nest_by_span_and_last_until_their_last_descendant() {
    let outline = outline(&story(), 7);
    let all: Vec<_> = (0..7).filter_map(|at| outline.get(at)).collect();
    let depths: Vec<_> = all.iter().map(|entry| entry.depth).collect();
    assert_eq!(depths, [0, 1, 2, 2, 3, 1, 2]);
    let last: Vec<_> = all.iter().map(|entry| entry.last_descendant()).collect();
    assert_eq!(last, [6, 6, 2, 4, 4, 5, 6]);
    assert_eq!(outline.duration_us(all[1]), 5000);
    assert_eq!(outline.kind(all[4]), Some("checkpoint_passed"));
}

#[test]
fn windows_give_the_same_outline_as_the_whole_session() {
    let (events, whole) = (story(), outline(&story(), 7));
    for size in 1..7 {
        let mut parts = Outline::default();
        for part in events.chunks(size) {
            let next = part.last().unwrap().sequence + 1;
            parts.extend(&OutlineWindow::of(part, next), 7);
        }
        assert_eq!(parts.entries, whole.entries, "windows of {size}");
    }
}

#[test]
fn a_fold_hides_present_and_later_children() {
    let events = story();
    let mut outline = outline(&events[..6], 6);
    assert!(outline.set_folded(1, FoldState::Closed));
    assert!(!outline.set_folded(1, FoldState::Closed), "it is folded");
    assert!(
        !outline.set_folded(2, FoldState::Closed),
        "nothing is below it"
    );
    assert_eq!(rows(&outline), [0, 1, 5]);
    outline.extend(&OutlineWindow::of(&events[6..], 7), 7);
    assert_eq!(
        rows(&outline),
        [0, 1, 5],
        "its end came while it was folded"
    );
    outline.reveal(4);
    assert_eq!(rows(&outline), [0, 1, 2, 3, 4, 5, 6]);
    outline.fold_to(Some(1));
    assert_eq!(rows(&outline), [0, 1, 5]);
    outline.fold_to(None);
    assert_eq!(outline.visible_rows(), None);
}

#[test]
fn a_missing_number_becomes_a_missing_entry() {
    let mut events = story();
    events.remove(4);
    events.truncate(5);
    let outline = outline(&events, 9);
    let gone: Vec<_> = (0..9)
        .filter(|at| {
            outline
                .get(*at)
                .unwrap()
                .marks()
                .has_any(EventMarks::MISSING)
        })
        .collect();
    assert_eq!(gone, [4, 6, 7, 8]);
    assert_eq!(outline.get(8).unwrap().marks().label(), "GONE");
}

#[test]
fn marks_are_found_across_blocks_in_both_directions() {
    let many: Vec<_> = (0..1000)
        .map(|at| match at {
            3 | 200 | 999 => {
                let mut gate = below(at, 0, "checkpoint_triggered");
                gate.payload.insert("mode".to_owned(), json!("blocking"));
                gate
            }
            _ => below(at, 0, "input_received"),
        })
        .collect();
    let outline = outline(&many, 1000);
    let next = |at| outline.next_with(at, EventMarks::WAIT);
    let last = |at| outline.last_with(at, EventMarks::WAIT);
    assert_eq!(
        [next(0), next(3), next(200), next(999)],
        [Some(3), Some(200), Some(999), None]
    );
    assert_eq!([last(999), last(200), last(3)], [Some(200), Some(3), None]);
    assert!(outline.marks_in(100, 300).has_any(EventMarks::WAIT));
    assert!(!outline.marks_in(320, 900).has_any(EventMarks::WAIT));
    assert!(outline.marks_in(200, 201).has_any(EventMarks::WAIT));
}

#[test]
fn an_event_with_a_forgotten_parent_nests_under_the_first_event() {
    let mut outline = Outline::default();
    let count = 3 * MAX_REMEMBERED as u64;
    let mut events: Vec<_> = (0..count)
        .map(|at| below(at, 0, "input_received"))
        .collect();
    events.push(below(count, 5, "context_injected"));
    events.push(below(count + 1, count - 1, "context_injected"));
    outline.extend(&OutlineWindow::of(&events, count + 2), count + 2);
    assert_eq!(outline.get(count).unwrap().parent(), Some(0));
    assert_eq!(outline.get(count + 1).unwrap().parent(), Some(count - 1));
}
