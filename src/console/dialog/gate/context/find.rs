//! Text search in the request. A match that is shown does not count as read.

use std::ops::Range;

use regex::{Regex, RegexBuilder};

use super::Context;
use crate::base::text::is_deceptive;

/// Maximum length of a search text.
const MOST_CHARS: usize = 80;

/// Rows shown above a match, for context.
const ROWS_BEFORE: usize = 3;

/// State of the search.
#[derive(Debug, Default)]
pub(super) struct Finder {
    query: String,
    pattern: Option<Regex>,
    /// Byte range of the current match.
    place: Option<Range<usize>>,
}

/// Direction of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Search {
    /// Starts from the first row on screen.
    Here,
    /// Next match.
    Next,
    /// Previous match.
    Previous,
}

/// Result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// No search text is set.
    Nothing,
    /// The match is on screen.
    Place,
    /// The match is on screen; the search wrapped around an end of the request.
    Around,
    /// The request has no match.
    Nowhere,
    /// The request has no layout yet.
    Unready,
}

impl Context {
    /// Returns the search text.
    pub(crate) fn query(&self) -> &str {
        &self.finder.query
    }

    /// Sets the search text.
    pub(crate) fn set_query(&mut self, query: &str) {
        let line = query.lines().next().unwrap_or_default();
        let fine = line.chars().filter(|&c| !is_deceptive(c));
        let query: String = fine.take(MOST_CHARS).collect();
        let pattern = RegexBuilder::new(&regex::escape(&query))
            .case_insensitive(true)
            .build();
        self.finder = Finder {
            pattern: pattern.ok().filter(|_| !query.is_empty()),
            query,
            place: None,
        };
    }

    /// Scrolls to a match.
    pub(crate) fn find(&mut self, search: Search, height: usize) -> Found {
        let Some(pattern) = self.finder.pattern.clone() else {
            return Found::Nothing;
        };
        if !self.is_laid_out() {
            return Found::Unready;
        }
        let text = self.text();
        let top = self.starts.get(self.top).copied().unwrap_or(text.len());
        let place = self.finder.place.as_ref();
        let ahead = match search {
            Search::Previous => {
                let before = place.map_or(top, |place| place.start);
                let hits = pattern.find_iter(text);
                hits.take_while(|hit| hit.start() < before).last()
            }
            Search::Next => pattern.find_at(text, place.map_or(top, |place| place.end)),
            Search::Here => pattern.find_at(text, top),
        };
        let around = || match search {
            Search::Previous => pattern.find_iter(text).last(),
            Search::Here | Search::Next => pattern.find(text),
        };
        let ahead = ahead.map(|hit| (Found::Place, hit));
        let found = ahead.or_else(|| around().map(|hit| (Found::Around, hit)));
        let Some((found, hit)) = found else {
            return Found::Nowhere;
        };
        let range = hit.range();
        let row = self.starts.partition_point(|start| *start <= range.start);
        let most = self.rows().saturating_sub(height);
        self.top = row.saturating_sub(1 + ROWS_BEFORE).min(most);
        self.finder.place = Some(range);
        found
    }

    /// Returns the byte ranges of the matches within `bytes`, clamped to it.
    pub(crate) fn marked(&self, bytes: &Range<usize>) -> Vec<Range<usize>> {
        let Some(pattern) = &self.finder.pattern else {
            return Vec::new();
        };
        let text = self.text().get(bytes.clone()).unwrap_or_default();
        let here = pattern.find_iter(text);
        let mut places: Vec<_> = here
            .map(|hit| bytes.start + hit.start()..bytes.start + hit.end())
            .collect();
        // A match that crosses a row end is found only as the current match.
        let whole = self.finder.place.iter().map(|place| {
            place.start.clamp(bytes.start, bytes.end)..place.end.clamp(bytes.start, bytes.end)
        });
        places.extend(whole.filter(|place| !place.is_empty()));
        places.sort_by_key(|place| (place.start, std::cmp::Reverse(place.end)));
        places
    }
}

#[cfg(test)]
mod tests {
    use super::super::written::Written;
    use super::*;
    use crate::console::theme::Look;

    fn context() -> Context {
        let lines: Vec<String> = (0..200).map(|line| format!("Line {line} of it")).collect();
        let mut context = Context::of(Written::text(lines.join("\n")), Vec::new());
        context.reflow(40, Look::default());
        context
    }

    fn top(context: &Context) -> usize {
        context.top
    }

    #[test]
    fn search_goes_to_the_next_and_previous_match_and_wraps_around() {
        let mut context = context();
        context.set_query("LINE 15");
        assert_eq!(context.find(Search::Here, 10), Found::Place);
        assert_eq!(top(&context), 12);
        assert_eq!(context.find(Search::Next, 10), Found::Place);
        assert_eq!(top(&context), 147);
        assert_eq!(context.find(Search::Previous, 10), Found::Place);
        assert_eq!(top(&context), 12);
        assert_eq!(context.find(Search::Previous, 10), Found::Around);
        assert_eq!(top(&context), 156);
        assert_eq!(context.find(Search::Next, 10), Found::Around);
        assert_eq!(top(&context), 12);
    }

    #[test]
    fn a_match_that_search_jumped_to_does_not_count_as_read() {
        let mut context = context();
        context.painted(10);
        context.set_query("line 150");
        assert_eq!(context.find(Search::Here, 10), Found::Place);
        context.painted(10);
        assert_eq!(context.percent(), 5);
    }

    #[test]
    fn a_search_without_a_match_reports_it_and_does_not_scroll() {
        let mut context = context();
        assert_eq!(context.find(Search::Next, 10), Found::Nothing);
        context.set_query("(.*");
        assert_eq!(context.find(Search::Here, 10), Found::Nowhere);
        assert_eq!(top(&context), 0);
    }
}
