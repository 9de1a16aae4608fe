//! Text search in the request. A match that is shown does not count as read.

use std::ops::Range;

use regex::{Regex, RegexBuilder};

use super::ContextPane;
use crate::base::text::is_deceptive;

/// Maximum length of a search text.
const MOST_CHARS: usize = 80;

/// Rows shown above a match, for context.
const ROWS_BEFORE: usize = 3;

/// State of the search.
#[derive(Debug, Default)]
pub(super) struct SearchState {
    query: String,
    pattern: Option<Regex>,
    /// Byte range of the current match.
    place: Option<Range<usize>>,
}

/// Direction of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SearchDirection {
    /// Starts from the first row on screen.
    Here,
    /// Next match.
    Next,
    /// Previous match.
    Previous,
}

/// Result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SearchResult {
    /// No search text is set.
    NoQuery,
    /// The match is on screen.
    Match,
    /// The match is on screen; the search wrapped around an end of the request.
    WrappedMatch,
    /// The request has no match.
    NoMatch,
    /// The request has no layout yet.
    NoLayout,
}

impl ContextPane {
    /// Returns the search text.
    pub(crate) fn query(&self) -> &str {
        &self.search.query
    }

    /// Sets the search text.
    pub(crate) fn set_query(&mut self, query: &str) {
        let line = query.lines().next().unwrap_or_default();
        let fine = line.chars().filter(|&c| !is_deceptive(c));
        let query: String = fine.take(MOST_CHARS).collect();
        let pattern = RegexBuilder::new(&regex::escape(&query))
            .case_insensitive(true)
            .build();
        self.search = SearchState {
            pattern: pattern.ok().filter(|_| !query.is_empty()),
            query,
            place: None,
        };
    }

    /// Scrolls to a match.
    pub(crate) fn find(&mut self, search: SearchDirection, height: usize) -> SearchResult {
        let Some(pattern) = self.search.pattern.clone() else {
            return SearchResult::NoQuery;
        };
        if !self.is_laid_out() {
            return SearchResult::NoLayout;
        }
        let text = self.text();
        let top = self.starts.get(self.top).copied().unwrap_or(text.len());
        let place = self.search.place.as_ref();
        let ahead = match search {
            SearchDirection::Previous => {
                let before = place.map_or(top, |place| place.start);
                let hits = pattern.find_iter(text);
                hits.take_while(|hit| hit.start() < before).last()
            }
            SearchDirection::Next => pattern.find_at(text, place.map_or(top, |place| place.end)),
            SearchDirection::Here => pattern.find_at(text, top),
        };
        let context = || match search {
            SearchDirection::Previous => pattern.find_iter(text).last(),
            SearchDirection::Here | SearchDirection::Next => pattern.find(text),
        };
        let ahead = ahead.map(|hit| (SearchResult::Match, hit));
        let found = ahead.or_else(|| context().map(|hit| (SearchResult::WrappedMatch, hit)));
        let Some((found, hit)) = found else {
            return SearchResult::NoMatch;
        };
        let range = hit.range();
        let row = self.starts.partition_point(|start| *start <= range.start);
        let most = self.rows().saturating_sub(height);
        self.top = row.saturating_sub(1 + ROWS_BEFORE).min(most);
        self.search.place = Some(range);
        found
    }

    /// Returns the byte ranges of the matches within `bytes`, clamped to it.
    pub(crate) fn matches_in(&self, bytes: &Range<usize>) -> Vec<Range<usize>> {
        let Some(pattern) = &self.search.pattern else {
            return Vec::new();
        };
        let text = self.text().get(bytes.clone()).unwrap_or_default();
        let here = pattern.find_iter(text);
        let mut places: Vec<_> = here
            .map(|hit| bytes.start + hit.start()..bytes.start + hit.end())
            .collect();
        // A match that crosses a row end is found only as the current match.
        let whole = self.search.place.iter().map(|place| {
            place.start.clamp(bytes.start, bytes.end)..place.end.clamp(bytes.start, bytes.end)
        });
        places.extend(whole.filter(|place| !place.is_empty()));
        places.sort_by_key(|place| (place.start, std::cmp::Reverse(place.end)));
        places
    }
}

#[cfg(test)]
mod tests {
    use super::super::request_layout::RequestText;
    use super::*;
    use crate::console::theme::Appearance;

    fn context() -> ContextPane {
        let lines: Vec<String> = (0..200).map(|line| format!("Line {line} of it")).collect();
        let mut context = ContextPane::of(RequestText::text(lines.join("\n")), Vec::new());
        context.reflow(40, Appearance::default());
        context
    }

    fn top(context: &ContextPane) -> usize {
        context.top
    }

    #[test]
    fn search_goes_to_the_next_and_previous_match_and_wraps_context() {
        let mut context = context();
        context.set_query("LINE 15");
        assert_eq!(context.find(SearchDirection::Here, 10), SearchResult::Match);
        assert_eq!(top(&context), 12);
        assert_eq!(context.find(SearchDirection::Next, 10), SearchResult::Match);
        assert_eq!(top(&context), 147);
        assert_eq!(
            context.find(SearchDirection::Previous, 10),
            SearchResult::Match
        );
        assert_eq!(top(&context), 12);
        assert_eq!(
            context.find(SearchDirection::Previous, 10),
            SearchResult::WrappedMatch
        );
        assert_eq!(top(&context), 156);
        assert_eq!(
            context.find(SearchDirection::Next, 10),
            SearchResult::WrappedMatch
        );
        assert_eq!(top(&context), 12);
    }

    #[test]
    fn a_match_that_search_jumped_to_does_not_count_as_read() {
        let mut context = context();
        context.mark_painted(10);
        context.set_query("line 150");
        assert_eq!(context.find(SearchDirection::Here, 10), SearchResult::Match);
        context.mark_painted(10);
        assert_eq!(context.percent(), 5);
    }

    #[test]
    fn a_search_without_a_match_reports_it_and_does_not_scroll() {
        let mut context = context();
        assert_eq!(
            context.find(SearchDirection::Next, 10),
            SearchResult::NoQuery
        );
        context.set_query("(.*");
        assert_eq!(
            context.find(SearchDirection::Here, 10),
            SearchResult::NoMatch
        );
        assert_eq!(top(&context), 0);
    }
}
