//! The console as a pure state machine.
//!
//! Events, snapshots and messages go in; requests come out. No I/O, no locks, no clock: callers pass
//! the time. The snapshot holds the facts; each screen and dialog owns only its view of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use ratatui::crossterm::event::{Event, KeyEvent, KeyEventKind};
use ratatui::layout::Rect;

use self::dialog_history::DialogHistory;
use super::chrome;
use super::dialog::gate::{DialogEntry, Draft, GateDialog};
use super::dialog::help::HelpDialog;
use super::dialog::{KeyResult, Layer, LayerChange, Repaint};
use super::keymap::{KeyAction, KeyScope, find_action};
use super::request::{ConsoleMessage, ConsoleRequest, MouseOwner, TrailPurpose};
use super::screen::{InputResult, ScreenId, Screens, Visibility};
use super::theme::{Appearance, Background, Meaning};
use crate::base::clock::Timestamp;
use crate::base::id::HeldRequestId;
use crate::engine::command::RecordFault;
use crate::engine::held::Held;
use crate::runtime::snapshot::RuntimeSnapshot;

mod actions;
mod alarm;
mod atlas_replies;
mod command;
mod dialog_history;
mod drafts;
mod mouse;
mod notifications;
mod operator_actions;
pub(super) mod record_faults;
mod screen_calls;
mod thread_replies;

/// Maximum time between two presses of Ctrl-C that together quit the console.
const QUIT_WINDOW: Duration = Duration::from_secs(1);

/// State of the full-screen console.
#[derive(Debug)]
pub(crate) struct App {
    pub(super) appearance: Appearance,
    pub(super) snapshot: Arc<RuntimeSnapshot>,
    /// The current screen.
    pub(super) screen: ScreenId,
    pub(super) screens: Screens,
    /// Number of the last dialog that sent a request; responses carry it, so each reaches its dialog.
    last_dialog_number: u64,
    pub(super) layers: Vec<Layer>,
    /// Drafts typed since the console began. `None`: the operator discarded the draft.
    drafts: BTreeMap<HeldRequestId, Option<Draft>>,
    /// State that outlives a dialog: the minimised dialog, drafts that came too late, viewing times.
    pub(super) dialog_history: DialogHistory,
    pub(super) notice: Option<(Meaning, String)>,
    /// Fault that the operator's own check of the record found.
    found_fault: Option<RecordFault>,
    /// Current alarms: problems outside the record.
    alarms: Arc<[String]>,
    /// Alarms that the operator acknowledged.
    known_alarms: BTreeSet<String>,
    /// Number of requests that wait for the runtime.
    pub(super) queued_requests: usize,
    last_cancel_at: Option<Timestamp>,
    mouse: MouseOwner,
    size: Rect,
}

impl App {
    /// Creates a console that shows `snapshot` in a terminal of that size.
    pub(crate) fn new(appearance: Appearance, snapshot: Arc<RuntimeSnapshot>, size: Rect) -> Self {
        let mut app = Self {
            appearance,
            snapshot,
            screen: ScreenId::Queue,
            screens: Screens::default(),
            last_dialog_number: 0,
            layers: Vec::new(),
            drafts: BTreeMap::new(),
            dialog_history: DialogHistory::default(),
            notice: None,
            found_fault: None,
            alarms: Arc::default(),
            known_alarms: BTreeSet::new(),
            queued_requests: 0,
            last_cancel_at: None,
            mouse: MouseOwner::default(),
            size,
        };
        let snapshot = Arc::clone(&app.snapshot);
        app.call_screens(|screen, context| {
            screen.restore(&snapshot);
            screen.on_snapshot(None, context);
        });
        app.lay_out();
        app
    }

    /// Handles several terminal events in order.
    pub(crate) fn on_events(&mut self, events: &[Event], now: Timestamp) -> Vec<ConsoleRequest> {
        let each = events.iter().flat_map(|event| self.on_event(event, now));
        each.collect()
    }

    /// Handles one terminal event.
    pub(crate) fn on_event(&mut self, event: &Event, now: Timestamp) -> Vec<ConsoleRequest> {
        let mut requests = match event {
            // Some terminals also report releases and repeats. Only a press counts as input.
            Event::Key(key) if key.kind == KeyEventKind::Press => self.on_key(*key, now),
            Event::Paste(text) => match (self.is_too_small(), self.layers.last_mut()) {
                (true, _) => Vec::new(),
                (false, Some(layer)) => layer.on_paste(text, now),
                (false, None) => {
                    let screen = self.screens.get_mut(self.screen);
                    screen.on_paste(text, &self.snapshot);
                    Vec::new()
                }
            },
            Event::Resize(width, height) => {
                self.size = Rect::new(0, 0, *width, *height);
                Vec::new()
            }
            Event::Mouse(event) => self.on_mouse(*event, now),
            Event::Key(_) | Event::FocusGained | Event::FocusLost => Vec::new(),
        };
        self.lay_out();
        requests.extend(self.save_open_draft());
        requests.extend(self.request_layouts());
        requests
            .into_iter()
            .filter(|request| self.may_send(request))
            .collect()
    }

    fn on_key(&mut self, key: KeyEvent, now: Timestamp) -> Vec<ConsoleRequest> {
        let global = find_action(KeyScope::Global, key);
        if self.is_too_small() {
            return self.on_key_when_too_small(global, now);
        }
        self.notice = None;
        if let Some(layer) = self.layers.last_mut() {
            match layer.on_key(key, now) {
                KeyResult::Consumed(changes) => return self.apply_changes(changes, now),
                KeyResult::Ignored => {}
            }
        } else if !matches!(
            global,
            // A text input takes every key except those with the same meaning on all screens.
            Some(KeyAction::Cancel | KeyAction::Redraw | KeyAction::Suspend)
        ) {
            let (result, requests) =
                self.call_screen(|screen, context| screen.on_input_key(key, context));
            if result == InputResult::Consumed {
                return requests;
            }
        }
        match global.or_else(|| find_action(KeyScope::Screen(self.screen), key)) {
            Some(action) => self.act(action, now),
            None => Vec::new(),
        }
    }

    /// Handles a key while the terminal is too small to show anything: only quit, Ctrl-C, redraw and
    /// suspend work.
    fn on_key_when_too_small(
        &mut self,
        global: Option<KeyAction>,
        now: Timestamp,
    ) -> Vec<ConsoleRequest> {
        match global {
            Some(KeyAction::Quit) if self.layers.is_empty() => vec![ConsoleRequest::Quit],
            Some(action @ (KeyAction::Cancel | KeyAction::Redraw | KeyAction::Suspend)) => {
                self.act(action, now)
            }
            Some(_) | None => Vec::new(),
        }
    }

    fn apply_changes(&mut self, changes: Vec<LayerChange>, now: Timestamp) -> Vec<ConsoleRequest> {
        let mut requests = Vec::new();
        for change in changes {
            match change {
                LayerChange::Close => requests.extend(self.close()),
                LayerChange::Help(scope) => self.layers.push(Layer::new(HelpDialog::new(scope))),
                LayerChange::Send(request) => requests.push(request),
                LayerChange::Minimise => self.minimise_dialog(),
                LayerChange::Run(command) => requests.extend(self.run_command(command, now)),
                LayerChange::Explain(gate) => requests.extend(self.explain_held(&gate)),
            }
        }
        requests
    }

    /// Opens the dialog of a request, or restores it if it is minimised.
    fn open_held(&mut self, held: &Arc<Held>, entry: DialogEntry) -> Vec<ConsoleRequest> {
        self.screens.queue.clear_changed(&held.id);
        if self.is_minimised(&held.id) {
            self.restore_dialog();
            if let Some(dialog) = self
                .layers
                .last_mut()
                .and_then(Layer::get_mut::<GateDialog>)
            {
                dialog.enter_by(entry);
            }
            return Vec::new();
        }
        let mut requests: Vec<ConsoleRequest> = self.close_minimised_dialog().into_iter().collect();
        let draft = self.draft_of(held);
        let mut sessions = self.snapshot.sessions.iter();
        let session = sessions.find(|session| session.id == held.session);
        let mut dialog = GateDialog::new(
            Arc::clone(held),
            session,
            draft,
            entry,
            self.decision_context(),
        );
        dialog.on_snapshot(&self.snapshot);
        requests.push(dialog.request_trail());
        self.layers.push(Layer::new(dialog));
        requests
    }

    /// Handles Ctrl-C: one level back; a second press soon after quits.
    fn cancel(&mut self, now: Timestamp) -> Vec<ConsoleRequest> {
        let before = self.last_cancel_at.replace(now);
        if before.is_some_and(|before| now.since(before) <= QUIT_WINDOW) {
            return vec![ConsoleRequest::Quit];
        }
        self.notice = Some((Meaning::Warning, "press Ctrl-C again to quit".to_owned()));
        let closes = match self.layers.last_mut() {
            Some(layer) => layer.cancel() == KeyResult::with(LayerChange::Close),
            None => {
                return self
                    .call_screen(|screen, context| screen.cancel(now, context))
                    .1;
            }
        };
        if closes {
            return self.close().into_iter().collect();
        }
        Vec::new()
    }

    /// Takes over a newer snapshot of the runtime's state.
    pub(crate) fn on_snapshot(&mut self, snapshot: Arc<RuntimeSnapshot>) -> Vec<ConsoleRequest> {
        let before = std::mem::replace(&mut self.snapshot, snapshot);
        let snapshot = Arc::clone(&self.snapshot);
        let changes =
            self.call_screens(|screen, context| screen.on_snapshot(Some(&before), context));
        let queue = &self.screens.queue;
        self.drafts.retain(|gate, _| queue.get(gate).is_some());
        for dialog in self.dialogs() {
            dialog.on_snapshot(&snapshot);
        }
        self.update_decision_contexts();
        self.lay_out();
        let mut requests = self.close_dialogs_of_previous_operator(&before);
        requests.extend(self.apply_screen_changes(changes));
        requests.extend(self.request_layouts());
        requests
    }

    /// Handles the response to a request.
    pub(crate) fn on_message(&mut self, message: ConsoleMessage) -> Vec<ConsoleRequest> {
        let mut requests = match message {
            ConsoleMessage::Decided(gate, reply) => self.on_reply(&gate, reply),
            ConsoleMessage::Trail(gate, TrailPurpose::LatestEvents, events) => {
                self.screens.queue.on_latest_events(&gate, &events);
                self.request_latest_events()
            }
            ConsoleMessage::Trail(gate, purpose, events) => {
                let appearance = self.appearance;
                for dialog in self.dialogs().filter(|dialog| *dialog.gate() == gate) {
                    dialog.on_trail(purpose, &events, appearance);
                }
                Vec::new()
            }
            ConsoleMessage::Operated(operate, reply) => {
                self.on_operated(&operate, &reply);
                Vec::new()
            }
            ConsoleMessage::Edited(gate, edited) => self.on_edited(&gate, edited),
            ConsoleMessage::ThreadEdited(edit, edited) => self.on_thread_edited(*edit, edited),
            ConsoleMessage::ThreadActed(thread, act, reply) => {
                self.on_thread_acted(&thread, &act, &reply)
            }
            ConsoleMessage::Snapshot(ticket, response) => {
                self.on_snapshot_response(ticket, response)
            }
            ConsoleMessage::EventFound(session, found) => self.on_event_found(&session, found),
            ConsoleMessage::LaidOut(laid) => {
                self.on_laid_out(laid);
                Vec::new()
            }
            ConsoleMessage::Sessions(sessions) => self.screens.trace.on_sessions(sessions),
            ConsoleMessage::Read(response) => self.screens.trace.on_read_result(response),
            ConsoleMessage::Explained(ticket, response) => self.on_explained(ticket, &response),
            ConsoleMessage::FilesChecked(states) => self.on_files_checked(states),
            ConsoleMessage::FolderChecked(listed) => self.on_folder_listed(listed),
            ConsoleMessage::Loaded(loaded) => self.on_loaded(loaded),
            ConsoleMessage::Studied(ticket, response) => self.on_studied(ticket, &response),
            ConsoleMessage::FileEdited(edited) => self.on_file_edited(edited),
            ConsoleMessage::Verified(checked) => {
                self.found_fault = record_faults::fault_in_report(&checked);
                let requests = self.screens.trace.on_verified(checked);
                self.update_decision_contexts();
                requests
            }
        };
        self.lay_out();
        requests.extend(self.request_layouts());
        requests
    }

    /// Handles the passing of time: the screen changes with the clock.
    pub(crate) fn on_tick(&mut self, now: Timestamp) -> Vec<ConsoleRequest> {
        let changes = self.call_screens(|screen, context| screen.on_tick(now, context));
        self.apply_screen_changes(changes)
    }

    /// Sets the number of requests that wait for the runtime.
    pub(crate) fn on_queued(&mut self, queued: usize) {
        self.queued_requests = queued;
    }

    /// Sets the background that the terminal reported.
    pub(crate) fn on_background(&mut self, ground: Background) -> Vec<ConsoleRequest> {
        self.appearance.background = ground;
        Vec::new()
    }

    /// Notes that a frame was painted: the operator has now seen its content.
    pub(crate) fn on_drawn(&mut self, area: Rect, now: Timestamp) -> Repaint {
        self.size = area;
        if self.is_too_small() {
            return Repaint::No;
        }
        let content = chrome::content(self, area);
        for id in ScreenId::ALL {
            self.screens.get_mut(*id).on_drawn(content);
        }
        match self.layers.last_mut() {
            Some(layer) => layer.on_drawn(content, self.appearance, now),
            None => Repaint::No,
        }
    }

    /// Lays out long texts for the area they will be painted in.
    fn lay_out(&mut self) {
        let drafted = self.gates_with_draft();
        self.screens.queue.set_drafts(drafted);
        let content = chrome::content(self, self.size);
        let appearance = self.appearance;
        for layer in &mut self.layers {
            layer.lay_out(content, appearance);
        }
        if let Some(minimised) = &mut self.dialog_history.minimised {
            minimised.lay_out(content, appearance);
        }
    }

    /// Returns the next time at which the screen changes without an event. That is the end of an
    /// arming time, the next second of a countdown, or the next minute of the clock.
    pub(crate) fn next_change(&self, now: Timestamp) -> Timestamp {
        let step = if self.has_countdown() {
            1_000_000
        } else {
            60_000_000
        };
        let next = Timestamp::from_micros((now.micros() / step + 1) * step);
        let screens = ScreenId::ALL.iter().filter_map(|id| {
            let screen = self.screens.get(*id);
            screen.next_change_at(now, self.visibility(*id))
        });
        let next = screens.fold(next, Timestamp::min);
        let armed = self.layers.last().and_then(|layer| layer.arms_at(now));
        armed.map_or(next, |at| at.min(next))
    }

    /// Returns the visibility of a screen.
    fn visibility(&self, screen: ScreenId) -> Visibility {
        if screen == self.screen {
            Visibility::Shown
        } else {
            Visibility::Hidden
        }
    }

    /// Returns true if a countdown is on screen.
    pub(super) fn has_countdown(&self) -> bool {
        !self.snapshot.held.is_empty()
    }

    /// Returns true if the terminal is too small to decide in.
    fn is_too_small(&self) -> bool {
        chrome::is_too_small(self.size)
    }
}
