//! Terminal's response to the query for its background colour.
//!
//! The response arrives among the keys, and may be late. Contract: nothing waits for it, and no typed
//! key is lost: events that only look like a response are passed on in order.

use std::time::Duration;

use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::base::clock::Timestamp;
use crate::console::theme::Background;

/// The query.
pub(super) const BACKGROUND_QUERY: &str = "\x1b]11;?\x1b\\";
/// Time during which a response is recognised. Slow connections take seconds.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum length of a response: `11;rgb:ffff/ffff/ffff`, and some margin.
const MAX_RESPONSE_EVENTS: usize = 32;

/// A response that is being received.
#[derive(Debug)]
pub(super) struct BackgroundQuery {
    until: Option<Timestamp>,
    held: Vec<Event>,
}

/// Classification of an event.
#[derive(Debug, PartialEq)]
pub(super) enum QueryEvent {
    /// Events to pass on; possibly none yet.
    Events(Vec<Event>),
    /// The response.
    Background(Background),
}

impl BackgroundQuery {
    /// Creates a state without a query.
    pub(super) fn without_query() -> Self {
        Self {
            until: None,
            held: Vec::new(),
        }
    }

    /// Creates the state after a query at `now`.
    pub(super) fn with_query(now: Timestamp) -> Self {
        Self {
            until: Some(now.plus(RESPONSE_TIMEOUT)),
            held: Vec::new(),
        }
    }

    /// Takes an event of the terminal.
    pub(super) fn take(&mut self, event: Event, now: Timestamp) -> QueryEvent {
        let Some(until) = self.until else {
            return QueryEvent::Events(vec![event]);
        };
        let Some(key) = pressed(&event) else {
            return self.release_kept_events(event);
        };
        let alt = key.modifiers == KeyModifiers::ALT;
        if self.held.is_empty() {
            // `ESC ]` arrives as Alt and a bracket.
            if !(alt && key.code == KeyCode::Char(']')) || now > until {
                return QueryEvent::Events(vec![event]);
            }
            self.held.push(event);
            return QueryEvent::Events(Vec::new());
        }
        // A response ends with `ESC \`, or with BEL, which arrives as Ctrl and G.
        let ends = (alt && key.code == KeyCode::Char('\\'))
            || (key.modifiers == KeyModifiers::CONTROL && key.code == KeyCode::Char('g'));
        if ends {
            let text: String = self.held.iter().skip(1).filter_map(letter).collect();
            if let Some(ground) = parse_background(&text) {
                self.held.clear();
                self.until = None;
                return QueryEvent::Background(ground);
            }
            return self.release_kept_events(event);
        }
        let fits = letter(&event).is_some_and(|c| c.is_ascii_hexdigit() || "rgba;:/".contains(c));
        if fits && self.held.len() < MAX_RESPONSE_EVENTS {
            self.held.push(event);
            return QueryEvent::Events(Vec::new());
        }
        self.release_kept_events(event)
    }

    /// Passes on the events kept so far: they were not a response.
    fn release_kept_events(&mut self, event: Event) -> QueryEvent {
        let mut events = std::mem::take(&mut self.held);
        events.push(event);
        QueryEvent::Events(events)
    }
}

fn pressed(event: &Event) -> Option<KeyEvent> {
    match event {
        Event::Key(key) if key.kind == KeyEventKind::Press => Some(*key),
        _ => None,
    }
}

fn letter(event: &Event) -> Option<char> {
    let key = pressed(event)?;
    match key.code {
        KeyCode::Char(c) if key.modifiers.is_empty() => Some(c),
        _ => None,
    }
}

/// Parses the background of a response such as `11;rgb:1e1e/1e1e/2e2e`.
fn parse_background(text: &str) -> Option<Background> {
    let (_, colour) = text.strip_prefix("11;")?.split_once(':')?;
    let part = |part: &str| {
        let digits = part.get(..part.len().min(2))?;
        u32::from_str_radix(digits, 16).ok()
    };
    let mut parts = colour.split('/').map(part);
    let (red, green, blue) = (parts.next()??, parts.next()??, parts.next()??);
    // Perceived brightness.
    let bright = (red * 299 + green * 587 + blue * 114) / 1000;
    Some(if bright >= 128 {
        Background::Light
    } else {
        Background::Dark
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        crate::console::tests::fixture::now()
    }

    fn key(code: char, modifiers: KeyModifiers) -> Event {
        Event::Key(KeyEvent::new(KeyCode::Char(code), modifiers))
    }

    /// Returns the events that the bytes of a response arrive as.
    fn answer(text: &str) -> Vec<Event> {
        let mut events = vec![key(']', KeyModifiers::ALT)];
        events.extend(text.chars().map(|c| key(c, KeyModifiers::NONE)));
        events.push(key('\\', KeyModifiers::ALT));
        events
    }

    /// Returns the events that were passed on, and the response.
    fn handle_events(events: Vec<Event>, at: Timestamp) -> (Vec<Event>, Option<Background>) {
        let mut answer = BackgroundQuery::with_query(now());
        let (mut handed, mut found) = (Vec::new(), None);
        for event in events {
            match answer.take(event, at) {
                QueryEvent::Events(events) => handed.extend(events),
                QueryEvent::Background(ground) => found = Some(ground),
            }
        }
        (handed, found)
    }

    #[test]
    fn a_background_response_among_keys_is_removed_and_the_keys_are_kept() {
        let typed = |c| key(c, KeyModifiers::NONE);
        let mut events = vec![typed('j')];
        events.extend(answer("11;rgb:fdfd/f6f6/e3e3"));
        events.push(typed('k'));
        let wanted = (vec![typed('j'), typed('k')], Some(Background::Light));
        assert_eq!(handle_events(events, now()), wanted);
        let dark = handle_events(answer("11;rgb:1e/1e/2e"), now());
        assert_eq!(dark, (vec![], Some(Background::Dark)));
    }

    #[test]
    fn events_that_only_look_like_a_background_response_are_passed_on() {
        let mut almost = vec![key(']', KeyModifiers::ALT)];
        almost.extend("11;q".chars().map(|c| key(c, KeyModifiers::NONE)));
        assert_eq!(handle_events(almost.clone(), now()), (almost, None));
        let long = answer(&"1".repeat(100));
        assert_eq!(handle_events(long.clone(), now()), (long, None));
        let wrong = answer("11;12");
        assert_eq!(handle_events(wrong.clone(), now()), (wrong, None));
    }

    #[test]
    fn a_late_background_response_is_passed_on_as_keys() {
        let late = now().plus(RESPONSE_TIMEOUT * 2);
        let events = answer("11;rgb:ff/ff/ff");
        assert_eq!(handle_events(events.clone(), late), (events, None));
        let mut unasked = BackgroundQuery::without_query();
        let event = key(']', KeyModifiers::ALT);
        assert_eq!(
            unasked.take(event.clone(), now()),
            QueryEvent::Events(vec![event])
        );
    }
}
