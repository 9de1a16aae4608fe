//! Commands of the record screen, other than moving the cursor.

use std::path::{Path, PathBuf};

use ratatui::Frame;
use ratatui::crossterm::event::KeyEvent;
use ratatui::layout::{Position, Rect};

use super::event_condition::parse_conditions;
use super::{
    ConsoleRequest, EventDirection, FoldState, FollowMode, LetterCommand, Meaning, Timestamp,
    TraceKey, TracePane, TracePrompt, TracePromptPurpose, TraceRead, TraceScreen, event_detail,
    view,
};
use crate::base::limits::MAX_COPY_BYTES;
use crate::base::text::one_line;
use crate::console::keymap::{KeyAction, KeyScope};
use crate::console::screen::{InputResult, Screen, ScreenContext, Visibility};
use crate::console::text_cells::counted;
use crate::console::theme::Appearance;
use crate::runtime::snapshot::RuntimeSnapshot;
use crate::trace::export::ExportFormatArg;

impl Screen for TraceScreen {
    fn draw(
        &self,
        snapshot: &RuntimeSnapshot,
        frame: &mut Frame,
        area: Rect,
        appearance: Appearance,
        _now: Timestamp,
    ) {
        view::draw(self, snapshot, frame, area, appearance);
    }

    fn handle_action(&mut self, action: KeyAction, now: Timestamp, context: &mut ScreenContext) {
        if action == KeyAction::Explain {
            self.explain_selected(context);
        } else {
            context.send(self.act(action, now));
        }
    }

    fn is_enabled(&self, action: KeyAction, _snapshot: &RuntimeSnapshot) -> bool {
        self.can(action)
    }

    fn leads_back(&self) -> bool {
        self.pane != TracePane::Sessions || self.comparing.is_some()
    }

    fn input_scope(&self) -> Option<KeyScope> {
        self.is_typing().then_some(KeyScope::Line)
    }

    fn on_input_key(&mut self, key: KeyEvent, context: &mut ScreenContext) -> InputResult {
        match self.type_key(key) {
            Some(requests) => {
                context.send(requests);
                InputResult::Consumed
            }
            None => InputResult::Ignored,
        }
    }

    fn on_paste(&mut self, text: &str, _snapshot: &RuntimeSnapshot) {
        if let Some(prompt) = &mut self.prompt {
            prompt.insert(text);
        }
    }

    fn on_click(&mut self, area: Rect, at: Position, context: &mut ScreenContext) {
        context.send(self.click(area, at));
    }

    /// Ctrl-C leads back even if a prompt or a letter command waits for a key.
    fn cancel(&mut self, now: Timestamp, context: &mut ScreenContext) {
        if self.prompt.take().is_none() && self.letter.take().is_none() {
            context.send(self.act(KeyAction::Back, now));
        }
    }

    fn on_snapshot(&mut self, before: Option<&RuntimeSnapshot>, context: &mut ScreenContext) {
        let grown =
            before.is_some_and(|before| before.chain.events != context.snapshot.chain.events);
        if grown && context.visibility == Visibility::Shown {
            context.send(self.reload());
        }
    }

    fn on_enter(&mut self, _now: Timestamp, context: &mut ScreenContext) {
        context.send(self.reload());
    }

    fn on_drawn(&mut self, area: Rect) {
        self.set_area(area);
    }

    /// Advances the playback.
    fn on_tick(&mut self, now: Timestamp, context: &mut ScreenContext) {
        if context.visibility == Visibility::Hidden {
            return;
        }
        if let Some(opened) = &mut self.opened {
            opened.on_tick(now);
        }
        context.send(self.request_missing_data());
    }

    fn next_change_at(&self, now: Timestamp, visibility: Visibility) -> Option<Timestamp> {
        match visibility {
            Visibility::Shown => self.changes_at(now),
            Visibility::Hidden => None,
        }
    }
}

impl TraceScreen {
    fn explain_selected(&self, context: &mut ScreenContext) {
        match self.explanation_request(context.snapshot) {
            Ok(asked) => context.explain(asked.question, &asked.title, &asked.note),
            Err(reason) => context.show_notice(Meaning::Hint, reason),
        }
    }

    pub(super) fn run_command(&mut self, browse: TraceKey, now: Timestamp) -> Vec<ConsoleRequest> {
        match browse {
            TraceKey::Copy => return self.copy(),
            TraceKey::Compare => return self.compare(),
            TraceKey::Export => self.open_export_prompt(),
            TraceKey::Jump => self.letter = Some(LetterCommand::Jump),
            TraceKey::Search
            | TraceKey::SearchNext
            | TraceKey::SearchPrevious
            | TraceKey::Filter
            | TraceKey::Fold
            | TraceKey::Unfold
            | TraceKey::FoldLevel
            | TraceKey::CheckpointBefore
            | TraceKey::CheckpointAfter
            | TraceKey::StepBack
            | TraceKey::StepOn
            | TraceKey::Play
            | TraceKey::StopOn
            | TraceKey::Follow
            | TraceKey::Raw
            | TraceKey::Mark => {
                if matches!(self.pane, TracePane::Spans | TracePane::Event) {
                    self.handle_session_command(browse, now);
                }
            }
        }
        self.request_missing_data()
    }

    fn handle_session_command(&mut self, browse: TraceKey, now: Timestamp) {
        let Some(opened) = &mut self.opened else {
            return;
        };
        match browse {
            TraceKey::Search => {
                self.prompt = Some(TracePrompt::new(TracePromptPurpose::Search, ""));
            }
            TraceKey::Filter => {
                let now = opened.filter.as_ref().map_or("", |scan| scan.text.as_str());
                self.prompt = Some(TracePrompt::new(TracePromptPurpose::Filter, now));
            }
            TraceKey::SearchNext | TraceKey::SearchPrevious if opened.search.is_none() => {
                self.message = Some((Meaning::Hint, "nothing to search: press /".to_owned()));
            }
            TraceKey::SearchNext => opened.next_hit(EventDirection::On),
            TraceKey::SearchPrevious => opened.next_hit(EventDirection::Back),
            TraceKey::Fold => self.fold(FoldState::Closed),
            TraceKey::Unfold => self.fold(FoldState::Open),
            TraceKey::FoldLevel => opened.fold_level(),
            TraceKey::CheckpointBefore => self.go_to_checkpoint(EventDirection::Back),
            TraceKey::CheckpointAfter => self.go_to_checkpoint(EventDirection::On),
            TraceKey::StepBack => opened.step(EventDirection::Back),
            TraceKey::StepOn => opened.step(EventDirection::On),
            TraceKey::Play => opened.toggle_play(now),
            TraceKey::StopOn => opened.stop_on = opened.stop_on.next(),
            TraceKey::Follow => {
                opened.follow = match opened.follow {
                    FollowMode::Still(_) => FollowMode::Tail,
                    FollowMode::Tail => FollowMode::Still(opened.total()),
                }
            }
            TraceKey::Mark => self.letter = Some(LetterCommand::Mark),
            TraceKey::Raw => opened.toggle_event_form(),
            TraceKey::Copy | TraceKey::Compare | TraceKey::Export | TraceKey::Jump => {}
        }
    }

    pub(super) fn fold(&mut self, fold: FoldState) {
        let Some(opened) = &mut self.opened else {
            return;
        };
        if self.pane == TracePane::Event {
            opened.fold_detail(fold);
        } else {
            opened.fold(fold);
        }
    }

    /// Toggles the fold of the selected line of an event.
    pub(super) fn toggle_fold(&mut self) {
        let line = self.opened.as_ref().and_then(|opened| opened.detail.line());
        match line.and_then(|line| line.fold) {
            Some(FoldState::Open) => self.fold(FoldState::Closed),
            Some(FoldState::Closed) => self.fold(FoldState::Open),
            None => {}
        }
    }

    fn go_to_checkpoint(&mut self, towards: EventDirection) {
        let Some(opened) = &mut self.opened else {
            return;
        };
        if opened.checkpoint(towards) {
            return;
        }
        let words = match (towards, opened.outline.len() < opened.total()) {
            (EventDirection::On, true) => "no checkpoint in the events read so far",
            (EventDirection::On, false) => "no checkpoint after this event",
            (EventDirection::Back, _) => "no checkpoint before this event",
        };
        self.message = Some((Meaning::Hint, words.to_owned()));
    }

    /// Goes to an event of the open session: the command `:seek N`, from any screen.
    pub(crate) fn seek(&mut self, sequence: u64) -> Result<Vec<ConsoleRequest>, String> {
        let Some(opened) = &mut self.opened else {
            return Err("open a session first".to_owned());
        };
        let last = opened.total().saturating_sub(1);
        if !opened.seek(sequence) {
            return Err(format!("no event {sequence}: events are 0 to {last}"));
        }
        Ok(self.request_missing_data())
    }

    pub(super) fn on_letter(&mut self, letter: LetterCommand, c: char) {
        if !c.is_ascii_alphabetic() {
            self.message = Some((Meaning::Hint, "press a letter".to_owned()));
            return;
        }
        match letter {
            LetterCommand::Mark => {
                if let Some(opened) = &self.opened {
                    let place = (opened.id().clone(), opened.place);
                    self.message = Some((Meaning::Hint, format!("{c} marks event {}", place.1)));
                    self.bookmarks.insert(c, place);
                }
            }
            LetterCommand::Jump => match self.bookmarks.get(&c).cloned() {
                None => self.message = Some((Meaning::Warning, format!("no bookmark {c}"))),
                Some((session, at)) => {
                    self.open_listed(&session, at);
                    if let Some(opened) = &mut self.opened {
                        opened.seek(at);
                    }
                }
            },
        }
    }

    /// Carries out a line that was typed to its end.
    pub(super) fn submit_prompt(&mut self, text: &str) -> Vec<ConsoleRequest> {
        let Some(purpose) = self.prompt.as_ref().map(|prompt| prompt.purpose) else {
            return Vec::new();
        };
        let text = text.trim();
        let done = match purpose {
            TracePromptPurpose::Filter => self.filter_by(text),
            TracePromptPurpose::Search => {
                self.search_for(text);
                Ok(Vec::new())
            }
            TracePromptPurpose::Export => self.export_to(text),
        };
        match done {
            Ok(mut requests) => {
                self.prompt = None;
                if !text.is_empty() {
                    self.prompt_history.remember(purpose, text);
                }
                requests.extend(self.request_missing_data());
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

    fn filter_by(&mut self, text: &str) -> Result<Vec<ConsoleRequest>, String> {
        let wrong = |error: crate::trace::filter::EventFilterError| {
            let help = error.help;
            format!("{error}. Allowed: {help}")
        };
        let conditions = parse_conditions(text).map_err(wrong)?;
        let ticket = self.next_ticket();
        if let Some(opened) = &mut self.opened {
            if conditions.is_empty() {
                opened.filter = None;
            } else {
                opened.set_filter(text.to_owned(), conditions, ticket);
            }
        }
        Ok(Vec::new())
    }

    fn search_for(&mut self, text: &str) {
        let ticket = self.next_ticket();
        if let Some(opened) = &mut self.opened {
            if text.is_empty() {
                opened.search = None;
            } else {
                opened.set_search(text.to_owned(), ticket);
            }
        }
    }

    fn open_export_prompt(&mut self) {
        let Some(session) = self.current_session() else {
            return;
        };
        let name = format!("{session}.jsonl");
        self.prompt = Some(TracePrompt::new(TracePromptPurpose::Export, &name));
    }

    /// Returns the open session, or the one selected in the list.
    fn current_session(&self) -> Option<&crate::base::id::SessionId> {
        match (self.pane, &self.opened) {
            (TracePane::Spans | TracePane::Event, Some(opened)) => Some(opened.id()),
            (TracePane::Sessions | TracePane::Compared, _) | (_, None) => self.selected.as_ref(),
        }
    }

    fn export_to(&mut self, text: &str) -> Result<Vec<ConsoleRequest>, String> {
        let path = PathBuf::from(text);
        let ending = path.extension().and_then(|ending| ending.to_str());
        let format = ending
            .and_then(ExportFormatArg::from_extension)
            .ok_or_else(|| {
                "the file name must end in .jsonl .csv .html .otlp or .golden".to_owned()
            })?;
        let session = self
            .current_session()
            .ok_or("no session to export")?
            .clone();
        let words = format!("writing {} of {session}...", format.name());
        self.message = Some((Meaning::Waiting, words));
        Ok(vec![ConsoleRequest::Read(TraceRead::Export {
            session,
            format,
            path,
        })])
    }

    pub(super) fn on_exported(&mut self, path: &Path, bytes: Result<u64, String>) {
        self.message = Some(match bytes {
            Ok(bytes) => {
                let path = one_line(&path.display().to_string());
                (Meaning::Passed, format!("wrote `{path}`: {bytes} bytes"))
            }
            Err(problem) => (
                Meaning::Error,
                format!("export failed: {}", one_line(&problem)),
            ),
        });
    }

    fn copy(&mut self) -> Vec<ConsoleRequest> {
        let found = match (self.pane, &self.opened) {
            (TracePane::Spans, Some(opened)) => opened
                .full_event()
                .map(|full_event| ("the event", event_detail::as_json(full_event))),
            (TracePane::Event, Some(opened)) => opened
                .full_event()
                .and_then(|full_event| opened.detail.value(full_event))
                .map(|value| ("the value", value)),
            (TracePane::Sessions | TracePane::Compared, _) | (_, None) => self
                .selected
                .as_ref()
                .map(|session| ("the session's name", session.to_string())),
        };
        let Some((what, mut text)) = found else {
            self.message = Some((Meaning::Hint, "nothing to copy yet".to_owned()));
            return Vec::new();
        };
        let full_event = text.len();
        text.truncate(text.floor_char_boundary(MAX_COPY_BYTES));
        let (meaning, words) = if text.len() < full_event {
            let cut = format!("copied {what}, only {} of {full_event} bytes", text.len());
            (Meaning::Warning, cut)
        } else {
            (
                Meaning::Passed,
                format!("copied {what}: {}", counted(full_event, "byte")),
            )
        };
        self.message = Some((meaning, words));
        vec![ConsoleRequest::Copy(text)]
    }
}
