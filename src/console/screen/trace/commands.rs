//! Commands of the record screen, other than moving the cursor.

use std::path::{Path, PathBuf};

use super::{
    Ask, Browse, Fold, Follow, Letter, Meaning, Pane, Prompt, Purpose, Request, Timestamp, Towards,
    Trace, detail,
};
use crate::base::limits::MAX_COPY_BYTES;
use crate::base::text::one_line;
use crate::console::cells::counted;
use crate::trace::export::Format;
use crate::trace::filter::Filter;

impl Trace {
    pub(super) fn browse(&mut self, browse: Browse, now: Timestamp) -> Vec<Request> {
        match browse {
            Browse::Copy => return self.copy(),
            Browse::Compare => return self.compare(),
            Browse::Export => self.ask_export(),
            Browse::Jump => self.letter = Some(Letter::Jump),
            Browse::Search
            | Browse::SearchNext
            | Browse::SearchPrevious
            | Browse::Filter
            | Browse::Fold
            | Browse::Unfold
            | Browse::FoldLevel
            | Browse::CheckpointBefore
            | Browse::CheckpointAfter
            | Browse::StepBack
            | Browse::StepOn
            | Browse::Play
            | Browse::StopOn
            | Browse::Follow
            | Browse::Mark => {
                if matches!(self.pane, Pane::Spans | Pane::Event) {
                    self.browse_session(browse, now);
                }
            }
        }
        self.settle()
    }

    fn browse_session(&mut self, browse: Browse, now: Timestamp) {
        let Some(opened) = &mut self.opened else {
            return;
        };
        match browse {
            Browse::Search => self.prompt = Some(Prompt::new(Purpose::Search, "")),
            Browse::Filter => {
                let now = opened.filter.as_ref().map_or("", |scan| scan.text.as_str());
                self.prompt = Some(Prompt::new(Purpose::Filter, now));
            }
            Browse::SearchNext | Browse::SearchPrevious if opened.search.is_none() => {
                self.said = Some((Meaning::Hint, "nothing was looked for: / looks".to_owned()));
            }
            Browse::SearchNext => opened.next_hit(Towards::On),
            Browse::SearchPrevious => opened.next_hit(Towards::Back),
            Browse::Fold => self.fold(Fold::Closed),
            Browse::Unfold => self.fold(Fold::Open),
            Browse::FoldLevel => opened.fold_level(),
            Browse::CheckpointBefore => self.go_to_checkpoint(Towards::Back),
            Browse::CheckpointAfter => self.go_to_checkpoint(Towards::On),
            Browse::StepBack => opened.step(Towards::Back),
            Browse::StepOn => opened.step(Towards::On),
            Browse::Play => opened.toggle_play(now),
            Browse::StopOn => opened.stop_on = opened.stop_on.next(),
            Browse::Follow => {
                opened.follow = match opened.follow {
                    Follow::Still(_) => Follow::Tail,
                    Follow::Tail => Follow::Still(opened.total()),
                }
            }
            Browse::Mark => self.letter = Some(Letter::Mark),
            Browse::Copy | Browse::Compare | Browse::Export | Browse::Jump => {}
        }
    }

    pub(super) fn fold(&mut self, fold: Fold) {
        let Some(opened) = &mut self.opened else {
            return;
        };
        if self.pane == Pane::Event {
            opened.fold_detail(fold);
        } else {
            opened.fold(fold);
        }
    }

    /// Toggles the fold of the selected line of an event.
    pub(super) fn turn_fold(&mut self) {
        let line = self.opened.as_ref().and_then(|opened| opened.detail.line());
        match line.and_then(|line| line.fold) {
            Some(Fold::Open) => self.fold(Fold::Closed),
            Some(Fold::Closed) => self.fold(Fold::Open),
            None => {}
        }
    }

    fn go_to_checkpoint(&mut self, towards: Towards) {
        let Some(opened) = &mut self.opened else {
            return;
        };
        if opened.checkpoint(towards) {
            return;
        }
        let words = match (towards, opened.outline.len() < opened.total()) {
            (Towards::On, true) => "no checkpoint in what was read so far",
            (Towards::On, false) => "no checkpoint behind this event",
            (Towards::Back, _) => "no checkpoint before this event",
        };
        self.said = Some((Meaning::Hint, words.to_owned()));
    }

    /// Goes to an event of the open session: the command `:seek N`, from any screen.
    pub(crate) fn seek(&mut self, sequence: u64) -> Result<Vec<Request>, String> {
        let Some(opened) = &mut self.opened else {
            return Err("open a session first".to_owned());
        };
        let last = opened.total().saturating_sub(1);
        if !opened.seek(sequence) {
            return Err(format!("no event {sequence}: they are 0 to {last}"));
        }
        Ok(self.settle())
    }

    pub(super) fn on_letter(&mut self, letter: Letter, c: char) {
        if !c.is_ascii_alphabetic() {
            self.said = Some((Meaning::Hint, "a letter, please".to_owned()));
            return;
        }
        match letter {
            Letter::Mark => {
                if let Some(opened) = &self.opened {
                    let place = (opened.id().clone(), opened.place);
                    self.said = Some((Meaning::Hint, format!("{c} marks event {}", place.1)));
                    self.bookmarks.insert(c, place);
                }
            }
            Letter::Jump => match self.bookmarks.get(&c).cloned() {
                None => self.said = Some((Meaning::Warning, format!("no event is marked {c}"))),
                Some((session, at)) => {
                    self.show(&session, at);
                    if let Some(opened) = &mut self.opened {
                        opened.seek(at);
                    }
                }
            },
        }
    }

    /// Carries out a line that was typed to its end.
    pub(super) fn typed(&mut self, text: &str) -> Vec<Request> {
        let Some(purpose) = self.prompt.as_ref().map(|prompt| prompt.purpose) else {
            return Vec::new();
        };
        let text = text.trim();
        let done = match purpose {
            Purpose::Filter => self.filter_by(text),
            Purpose::Search => {
                self.search_for(text);
                Ok(Vec::new())
            }
            Purpose::Export => self.export_to(text),
        };
        match done {
            Ok(mut requests) => {
                self.prompt = None;
                if !text.is_empty() {
                    self.past.remember(purpose, text);
                }
                requests.extend(self.settle());
                requests
            }
            Err(problem) => {
                if let Some(prompt) = &mut self.prompt {
                    prompt.problem = Some(problem);
                }
                Vec::new()
            }
        }
    }

    fn filter_by(&mut self, text: &str) -> Result<Vec<Request>, String> {
        let wrong = |error: crate::trace::filter::FilterError| {
            let help = error.help;
            format!("{error}. Allowed: {help}")
        };
        let filter: Filter = text.parse().map_err(wrong)?;
        let ticket = self.ticket();
        if let Some(opened) = &mut self.opened {
            if filter.is_empty() {
                opened.filter = None;
            } else {
                opened.set_filter(text.to_owned(), filter, ticket);
            }
        }
        Ok(Vec::new())
    }

    fn search_for(&mut self, text: &str) {
        let ticket = self.ticket();
        if let Some(opened) = &mut self.opened {
            if text.is_empty() {
                opened.search = None;
            } else {
                opened.set_search(text.to_owned(), ticket);
            }
        }
    }

    fn ask_export(&mut self) {
        let Some(session) = self.chosen() else {
            return;
        };
        let name = format!("{session}.jsonl");
        self.prompt = Some(Prompt::new(Purpose::Export, &name));
    }

    /// Returns the open session, or the one selected in the list.
    fn chosen(&self) -> Option<&crate::base::id::SessionId> {
        match (self.pane, &self.opened) {
            (Pane::Spans | Pane::Event, Some(opened)) => Some(opened.id()),
            (Pane::Sessions | Pane::Compared, _) | (_, None) => self.selected.as_ref(),
        }
    }

    fn export_to(&mut self, text: &str) -> Result<Vec<Request>, String> {
        let path = PathBuf::from(text);
        let ending = path.extension().and_then(|ending| ending.to_str());
        let format = ending.and_then(Format::of_ending).ok_or_else(|| {
            "the name of the file says how it is written: .jsonl .csv .html .otlp or .golden"
                .to_owned()
        })?;
        let session = self.chosen().ok_or("there is no session to write")?.clone();
        let words = format!("writing {} of {session}...", format.name());
        self.said = Some((Meaning::Waiting, words));
        Ok(vec![Request::Read(Ask::Export {
            session,
            format,
            path,
        })])
    }

    pub(super) fn on_exported(&mut self, path: &Path, bytes: Result<u64, String>) {
        self.said = Some(match bytes {
            Ok(bytes) => {
                let path = one_line(&path.display().to_string());
                (Meaning::Passed, format!("wrote `{path}`: {bytes} bytes"))
            }
            Err(problem) => (
                Meaning::Error,
                format!("nothing was written: {}", one_line(&problem)),
            ),
        });
    }

    fn copy(&mut self) -> Vec<Request> {
        let found = match (self.pane, &self.opened) {
            (Pane::Spans, Some(opened)) => opened
                .whole()
                .map(|whole| ("the event", detail::as_json(whole))),
            (Pane::Event, Some(opened)) => opened
                .whole()
                .and_then(|whole| opened.detail.value(whole))
                .map(|value| ("the value", value)),
            (Pane::Sessions | Pane::Compared, _) | (_, None) => self
                .selected
                .as_ref()
                .map(|session| ("the session's name", session.to_string())),
        };
        let Some((what, mut text)) = found else {
            self.said = Some((Meaning::Hint, "nothing to copy yet".to_owned()));
            return Vec::new();
        };
        let whole = text.len();
        text.truncate(text.floor_char_boundary(MAX_COPY_BYTES));
        let (meaning, words) = if text.len() < whole {
            let cut = format!("copied {what}, CUT: {} of {whole} bytes", text.len());
            (Meaning::Warning, cut)
        } else {
            (
                Meaning::Passed,
                format!("copied {what}: {}", counted(whole, "byte")),
            )
        };
        self.said = Some((meaning, words));
        vec![Request::Copy(text)]
    }
}
