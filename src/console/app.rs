//! The console as a pure state machine.
//!
//! Events, snapshots and messages go in; requests come out. No I/O, no locks, no clock: callers pass
//! the time. The snapshot holds the facts; each screen and dialog owns only its view of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use ratatui::crossterm::event::{Event, KeyEvent, KeyEventKind};
use ratatui::layout::Rect;

use self::aside::Aside;
use super::chrome;
use super::dialog::gate::{Draft, Entry, GateDialog};
use super::dialog::help::HelpDialog;
use super::keymap::{Action, Scope, lookup};
use super::layer::{Change, Handled, Layer, Repaint};
use super::request::{Message, Mouse, Purpose, Request};
use super::screen::atlas::Atlases;
use super::screen::queue::{Place, Queue, place_of};
use super::screen::threads::Threads;
use super::screen::trace::Trace;
use super::theme::{Ground, Look, Meaning};
use crate::base::clock::Timestamp;
use crate::base::id::GateId;
use crate::engine::command::RecordFault;
use crate::engine::held::Held;
use crate::runtime::snapshot::Snapshot;

mod act;
mod alarm;
mod aside;
mod atlas;
mod command;
mod drafts;
mod mouse;
mod operate;
mod permit;
mod queue;
pub(super) mod record;
mod snapshot;
mod steward;
mod threads;

/// Maximum time between two presses of Ctrl-C that together quit the console.
const TWICE: Duration = Duration::from_secs(1);

/// State of the full-screen console.
#[derive(Debug)]
pub(crate) struct App {
    pub(super) look: Look,
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) tab: Tab,
    pub(super) queue: Queue,
    pub(super) trace: Trace,
    pub(super) threads: Threads,
    pub(super) atlases: Atlases,
    /// Number of the last dialog that sent a request; responses carry it, so each reaches its dialog.
    numbers: u64,
    pub(super) layers: Vec<Layer>,
    /// Drafts typed since the console began. `None`: the operator discarded the draft.
    drafts: BTreeMap<GateId, Option<Draft>>,
    /// State that outlives a dialog: the minimised dialog, drafts that came too late, viewing times.
    pub(super) aside: Aside,
    pub(super) notice: Option<(Meaning, String)>,
    /// Fault that the operator's own check of the record found.
    found: Option<RecordFault>,
    /// Current alarms: problems outside the record.
    alarms: Arc<[String]>,
    /// Alarms that the operator acknowledged.
    known_alarms: BTreeSet<String>,
    /// Number of requests that wait for the runtime.
    pub(super) queued: usize,
    cancelled: Option<Timestamp>,
    mouse: Mouse,
    size: Rect,
}

/// One of the four screens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tab {
    Queue,
    Trace,
    Threads,
    Atlas,
}

impl Tab {
    /// Scope in the key table for the keys of this screen.
    pub(crate) fn scope(self) -> Scope {
        match self {
            Self::Queue => Scope::Queue,
            Self::Trace => Scope::Trace,
            Self::Threads => Scope::Threads,
            Self::Atlas => Scope::Atlas,
        }
    }
}

impl App {
    /// Creates a console that shows `snapshot` in a terminal of that size.
    pub(crate) fn new(look: Look, snapshot: Arc<Snapshot>, size: Rect) -> Self {
        let mut queue = Queue::default();
        queue.sync(&[], &snapshot.held);
        let mut app = Self {
            look,
            snapshot,
            tab: Tab::Queue,
            queue,
            trace: Trace::default(),
            threads: Threads::default(),
            atlases: Atlases::default(),
            numbers: 0,
            layers: Vec::new(),
            drafts: BTreeMap::new(),
            aside: Aside::default(),
            notice: None,
            found: None,
            alarms: Arc::default(),
            known_alarms: BTreeSet::new(),
            queued: 0,
            cancelled: None,
            mouse: Mouse::default(),
            size,
        };
        app.atlases.sync(&app.snapshot);
        app.threads.resume(&app.snapshot.thread_drafts);
        app.threads.sync(&app.snapshot);
        app.lay_out();
        app
    }

    /// Handles several terminal events in order.
    pub(crate) fn on_events(&mut self, events: &[Event], now: Timestamp) -> Vec<Request> {
        let each = events.iter().flat_map(|event| self.on_event(event, now));
        each.collect()
    }

    /// Handles one terminal event.
    pub(crate) fn on_event(&mut self, event: &Event, now: Timestamp) -> Vec<Request> {
        let mut requests = match event {
            // Some terminals also report releases and repeats. Only a press counts as input.
            Event::Key(key) if key.kind == KeyEventKind::Press => self.on_key(*key, now),
            Event::Paste(text) => match (self.is_small(), self.layers.last_mut()) {
                (true, _) => Vec::new(),
                (false, Some(layer)) => layer.on_paste(text, now),
                (false, None) => {
                    match self.tab {
                        Tab::Queue => self.queue.paste(text),
                        Tab::Trace => self.trace.on_paste(text),
                        Tab::Threads => self.threads.paste(text, &self.snapshot),
                        Tab::Atlas => {}
                    }
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
        requests.extend(self.keep_typed());
        requests.extend(self.ask_rows());
        requests
            .into_iter()
            .filter(|request| self.permits(request))
            .collect()
    }

    fn on_key(&mut self, key: KeyEvent, now: Timestamp) -> Vec<Request> {
        let global = lookup(Scope::Global, key);
        if self.is_small() {
            return self.on_key_unseen(global, now);
        }
        self.notice = None;
        if let Some(layer) = self.layers.last_mut() {
            match layer.on_key(key, now) {
                Handled::Consumed(changes) => return self.apply(changes, now),
                Handled::Ignored => {}
            }
        } else if self.is_typing(global) {
            return self.type_key(key);
        }
        // A text input takes every key except those with the same meaning on all screens.
        let everywhere = matches!(
            global,
            Some(Action::Cancel | Action::Redraw | Action::Suspend)
        );
        if self.tab == Tab::Trace
            && self.layers.is_empty()
            && !everywhere
            && let Some(requests) = self.trace.on_key(key)
        {
            return requests;
        }
        match global.or_else(|| lookup(self.tab.scope(), key)) {
            Some(action) => self.act(action, now),
            None => Vec::new(),
        }
    }

    /// Handles a key while the terminal is too small to show anything: only quit, Ctrl-C, redraw and
    /// suspend work.
    fn on_key_unseen(&mut self, global: Option<Action>, now: Timestamp) -> Vec<Request> {
        match global {
            Some(Action::Quit) if self.layers.is_empty() => vec![Request::Quit],
            Some(action @ (Action::Cancel | Action::Redraw | Action::Suspend)) => {
                self.act(action, now)
            }
            Some(_) | None => Vec::new(),
        }
    }

    fn apply(&mut self, changes: Vec<Change>, now: Timestamp) -> Vec<Request> {
        let mut requests = Vec::new();
        for change in changes {
            match change {
                Change::Close => requests.extend(self.close()),
                Change::Help(scope) => self.layers.push(Layer::Help(HelpDialog::new(scope))),
                Change::Ask(request) => requests.push(request),
                Change::Minimise => self.put_aside(),
                Change::Run(command) => requests.extend(self.run(command, now)),
                Change::Explain(gate) => requests.extend(self.explain_held(&gate)),
            }
        }
        requests
    }

    fn open(&mut self, entry: Entry) -> Vec<Request> {
        match self.queue.selected().cloned() {
            Some(held) => self.open_held(&held, entry),
            None => Vec::new(),
        }
    }

    /// Opens the dialog of a request, or restores it if it is minimised.
    fn open_held(&mut self, held: &Arc<Held>, entry: Entry) -> Vec<Request> {
        self.queue.looked_at(&held.id);
        if self.is_aside(&held.id) {
            self.bring_back();
            if let Some(Layer::Gate(dialog)) = self.layers.last_mut() {
                dialog.enter_by(entry);
            }
            return Vec::new();
        }
        let mut requests: Vec<Request> = self.dismiss().into_iter().collect();
        let draft = self.draft_of(held);
        let mut sessions = self.snapshot.sessions.iter();
        let session = sessions.find(|session| session.id == held.session);
        let mut dialog = GateDialog::new(Arc::clone(held), session, draft, entry, self.around());
        dialog.on_snapshot(&self.snapshot);
        requests.push(dialog.ask_trail());
        self.layers.push(Layer::Gate(Box::new(dialog)));
        requests
    }

    /// Handles Ctrl-C: one level back; a second press soon after quits.
    fn cancel(&mut self, now: Timestamp) -> Vec<Request> {
        let before = self.cancelled.replace(now);
        if before.is_some_and(|before| now.since(before) <= TWICE) {
            return vec![Request::Quit];
        }
        self.notice = Some((
            Meaning::Warning,
            "Ctrl-C again leaves the console".to_owned(),
        ));
        let closes = match self.layers.last_mut() {
            Some(Layer::Gate(dialog)) => dialog.back() == Handled::with(Change::Close),
            Some(
                Layer::Help(_)
                | Layer::Quit(_)
                | Layer::Confirm(_)
                | Layer::Palette(_)
                | Layer::Explain(_)
                | Layer::WhatIf(_)
                | Layer::Atlas(_)
                | Layer::Snapshot(_),
            ) => true,
            None if self.tab == Tab::Atlas => {
                return self.atlases.act(Action::Back, &self.snapshot, now);
            }
            None if self.tab == Tab::Trace => return self.trace.cancel(now),
            None if self.tab == Tab::Threads => return self.act(Action::Back, now),
            None => false,
        };
        if closes {
            return self.close().into_iter().collect();
        }
        Vec::new()
    }

    /// Takes over a newer snapshot of the runtime's state.
    pub(crate) fn on_snapshot(&mut self, snapshot: Arc<Snapshot>) -> Vec<Request> {
        let before = std::mem::replace(&mut self.snapshot, snapshot);
        let snapshot = Arc::clone(&self.snapshot);
        let arrivals = self.queue.sync(&before.held, &snapshot.held);
        let queue = &self.queue;
        self.drafts.retain(|gate, _| queue.get(gate).is_some());
        for dialog in self.dialogs() {
            dialog.on_snapshot(&snapshot);
        }
        self.tell_around();
        self.lay_out();
        let mut requests = self.leave_to(&before);
        requests.extend(self.sync_atlases());
        self.threads.sync(&snapshot);
        if !arrivals.is_empty() || before.held.len() != snapshot.held.len() {
            requests.push(self.tell_arrivals(&arrivals));
        }
        requests.extend(self.ask_last());
        if self.tab == Tab::Trace && before.chain.events != snapshot.chain.events {
            requests.extend(self.trace.reload());
        }
        requests.extend(self.ask_rows());
        requests
    }

    /// Handles the response to a request.
    pub(crate) fn on_message(&mut self, message: Message) -> Vec<Request> {
        let mut requests = match message {
            Message::Decided(gate, reply) => self.on_reply(&gate, reply),
            Message::Trail(gate, Purpose::Glance, events) => {
                self.queue.on_last(&gate, &events);
                self.ask_last()
            }
            Message::Trail(gate, purpose, events) => {
                let look = self.look;
                for dialog in self.dialogs().filter(|dialog| *dialog.gate() == gate) {
                    dialog.on_trail(purpose, &events, look);
                }
                Vec::new()
            }
            Message::Operated(operate, reply) => {
                self.on_operated(&operate, &reply);
                Vec::new()
            }
            Message::Edited(gate, edited) => self.on_edited(&gate, edited),
            Message::ThreadEdited(edit, edited) => self.on_thread_edited(*edit, edited),
            Message::ThreadActed(thread, act, reply) => self.on_thread_acted(&thread, &act, &reply),
            Message::Snapshot(ticket, told) => self.on_snapshot_told(ticket, told),
            Message::EventFound(session, found) => self.on_event_found(&session, found),
            Message::LaidOut(laid) => {
                self.on_laid_out(laid);
                Vec::new()
            }
            Message::Sessions(sessions) => self.trace.on_sessions(sessions),
            Message::Read(told) => self.trace.on_told(told),
            Message::Explained(ticket, told) => self.on_explained(ticket, &told),
            Message::Glanced(states) => self.on_glanced(states),
            Message::Listed(listed) => self.on_listed(listed),
            Message::Loaded(loaded) => self.on_loaded(loaded),
            Message::Studied(ticket, told) => self.on_studied(ticket, &told),
            Message::FileEdited(edited) => self.on_file_edited(edited),
            Message::Verified(checked) => {
                self.found = record::unsound(&checked);
                let requests = self.trace.on_verified(checked);
                self.tell_around();
                requests
            }
        };
        self.lay_out();
        requests.extend(self.ask_rows());
        requests
    }

    /// Handles the passing of time: the screen changes with the clock.
    pub(crate) fn on_tick(&mut self, now: Timestamp) -> Vec<Request> {
        let mut requests = self.atlases.on_tick(&self.snapshot, now);
        match self.tab {
            Tab::Trace => requests.extend(self.trace.on_tick(now)),
            Tab::Queue | Tab::Threads | Tab::Atlas => {}
        }
        requests
    }

    /// Sets the number of requests that wait for the runtime.
    pub(crate) fn on_queued(&mut self, queued: usize) {
        self.queued = queued;
    }

    /// Sets the background that the terminal reported.
    pub(crate) fn on_ground(&mut self, ground: Ground) -> Vec<Request> {
        self.look.ground = ground;
        Vec::new()
    }

    /// Notes that a frame was painted: the operator has now seen its content.
    pub(crate) fn on_drawn(&mut self, area: Rect, now: Timestamp) -> Repaint {
        self.size = area;
        if self.is_small() {
            return Repaint::No;
        }
        let content = chrome::content(self, area);
        self.trace.on_drawn(content);
        self.atlases.on_drawn(content);
        self.threads.on_drawn(content);
        if let Some(Place::Rows(height)) = place_of(&self.queue, content, None) {
            self.queue.on_drawn(height);
        }
        match self.layers.last_mut() {
            Some(Layer::Gate(dialog)) => dialog.on_drawn(content, self.look, now),
            Some(
                Layer::Help(_)
                | Layer::Quit(_)
                | Layer::Confirm(_)
                | Layer::Palette(_)
                | Layer::Explain(_)
                | Layer::WhatIf(_)
                | Layer::Atlas(_)
                | Layer::Snapshot(_),
            )
            | None => Repaint::No,
        }
    }

    /// Lays out long texts for the area they will be painted in.
    fn lay_out(&mut self) {
        let drafted = self.drafted();
        self.queue.set_drafts(drafted);
        let content = chrome::content(self, self.size);
        let look = self.look;
        for dialog in self.dialogs() {
            dialog.lay_out(content, look);
        }
        self.lay_out_explained(content);
    }

    /// Returns the next time at which the screen changes without an event. That is the end of an
    /// arming time, the next second of a countdown, or the next minute of the clock.
    pub(crate) fn next_change(&self, now: Timestamp) -> Timestamp {
        let step = if self.counts_down() {
            1_000_000
        } else {
            60_000_000
        };
        let next = Timestamp::from_micros((now.micros() / step + 1) * step);
        let glance = self.atlases.glances_at();
        let next = glance.map_or(next, |at| at.max(now).min(next));
        let next = match self.tab {
            Tab::Trace => self.trace.changes_at(now).map_or(next, |at| at.min(next)),
            Tab::Queue | Tab::Threads | Tab::Atlas => next,
        };
        match self.layers.last() {
            Some(Layer::Gate(dialog)) => dialog.arms_at(now).map_or(next, |at| at.min(next)),
            Some(Layer::Atlas(dialog)) => dialog.arms_at(now).map_or(next, |at| at.min(next)),
            Some(
                Layer::Help(_)
                | Layer::Quit(_)
                | Layer::Confirm(_)
                | Layer::Palette(_)
                | Layer::Explain(_)
                | Layer::WhatIf(_)
                | Layer::Snapshot(_),
            )
            | None => next,
        }
    }

    /// Scope in the key table for the keys that work now.
    pub(super) fn scope(&self) -> Scope {
        match self.tab {
            Tab::Trace if self.trace.is_typing() => Scope::Line,
            Tab::Queue | Tab::Trace | Tab::Threads | Tab::Atlas => self.tab.scope(),
        }
    }

    /// Returns true if a countdown is on screen.
    pub(super) fn counts_down(&self) -> bool {
        !self.snapshot.held.is_empty()
    }

    /// Returns true if the terminal is too small to decide in.
    fn is_small(&self) -> bool {
        chrome::is_small(self.size)
    }
}
