//! Driver: waits for events, executes the app's requests, and feeds the results back.

use std::sync::Arc;

use futures_util::{FutureExt as _, StreamExt as _};
use ratatui::crossterm::event::EventStream;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use self::background_query::{BackgroundQuery, QueryEvent};
use self::draft_outbox::DraftOutbox;
use self::editor::EditorJob;
use self::record_reader::QuitFlag;
use super::AlarmReceiver;
use super::app::App;
use super::dialog::Repaint;
use super::dialog::gate::LayoutJob;
use super::request::{ConsoleMessage, ConsoleRequest, MouseOwner};
use super::terminal::TerminalScreen;
use super::theme::{Appearance, ColourMode, Theme};
use super::{AtlasFileSource, ConsoleError, ConsoleOptions, ScenarioRunner};
use crate::atlas::ManifestTransform;
use crate::runtime::snapshot::RuntimeSnapshot;
use crate::runtime::{AtlasLoad, OperatorHandle};

pub(super) mod atlas;
mod background_query;
mod draft_outbox;
mod editor;
pub(super) mod record_reader;
pub(super) mod snapshot;
pub(super) mod study;

/// Maximum number of results that wait for the app. If the queue is full, the sending task waits.
const MESSAGE_QUEUE: usize = 64;

/// Next step of the console's main loop.
#[derive(Clone, Debug, PartialEq, Eq)]
enum LoopStep {
    Continue,
    Quit,
    /// Run an external editor, then continue.
    Edit(EditorJob),
}

/// State of the screen compared with the app.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScreenState {
    Current,
    Outdated,
}

/// Runs the console until it ends.
pub(super) async fn drive(
    operator_handle: OperatorHandle,
    options: ConsoleOptions,
) -> Result<(), ConsoleError> {
    let mut outbox = DraftOutbox::new(operator_handle.clone());
    let ended = run(operator_handle, options, &mut outbox).await;
    // The terminal is restored by now. The last draft must be saved too.
    outbox.send_all().await;
    ended.or_else(ConsoleError::ok_if_terminal_closed)
}

async fn run(
    operator_handle: OperatorHandle,
    options: ConsoleOptions,
    outbox: &mut DraftOutbox,
) -> Result<(), ConsoleError> {
    let mut signals = QuitSignals::new()?;
    let mut snapshots = operator_handle.snapshots();
    let first = Arc::clone(&snapshots.borrow_and_update());
    let (mut screen, mut app, mut answer) = open(&options, first)?;
    let (sender, mut messages) = mpsc::channel(MESSAGE_QUEUE);
    let executor = RequestExecutor::new(operator_handle, sender, &options);
    let mut alarms = options.alarms.clone();
    let mut events = EventStream::new();
    let mut screen_state = ScreenState::Outdated;
    executor.run(app.initial_requests(), &mut screen, outbox)?;
    loop {
        let now = options.clock.now();
        let requests = tokio::select! {
            biased;
            // A signal to end comes first: the terminal must be restored.
            () = signals.next_signal() => return Ok(()),
            // Results of decisions and new snapshots come before keys: a key is judged against the
            // newest state, so that no settled request is decided again.
            Some(message) = messages.recv() => app.on_message(message),
            changed = snapshots.changed() => {
                changed.map_err(|_| ConsoleError::Stopped)?;
                // A burst of changes leaves one snapshot, the newest.
                let snapshot = Arc::clone(&snapshots.borrow_and_update());
                app.on_snapshot(snapshot)
            }
            active = AlarmReceiver::next(&mut alarms) => app.on_alarms(active),
            event = events.next() => match event {
                Some(event) => match answer.take(event?, now) {
                    QueryEvent::Events(events) => app.on_events(&events, options.clock.now()),
                    QueryEvent::Background(ground) => app.on_background(ground),
                },
                // The terminal was closed; held requests stay held.
                None => return Ok(()),
            },
            // Drafts are sent before painting, so that typed text is not lost. This changes nothing on
            // screen.
            () = outbox.send_next(), if !outbox.is_empty() => continue,
            // Painting comes last, if nothing above is ready: a burst is painted once. Nothing above
            // can starve it, because keys and results arrive one at a time, from people and from
            // earlier requests.
            () = std::future::ready(()), if screen_state == ScreenState::Outdated => {
                app.on_queued(executor.operator_handle.queue_len());
                let area = screen.paint(&app, now)?;
                screen_state = match app.on_drawn(area, options.clock.now()) {
                    Repaint::Yes => ScreenState::Outdated,
                    Repaint::No => ScreenState::Current,
                };
                continue;
            }
            // Only if the screen is current, so that this wait never delays a paint.
            () = options.clock.sleep_until(app.next_change(now)) => app.on_tick(options.clock.now()),
        };
        screen_state = ScreenState::Outdated;
        match executor.run(requests, &mut screen, outbox)? {
            LoopStep::Continue => {}
            LoopStep::Quit => return Ok(()),
            LoopStep::Edit(editing) => {
                // A reader of keys here would take them from the editor.
                drop(events);
                let Some(edited) = screen
                    .run_in_terminal(signals.wait_for_program(editing.run()))
                    .await?
                else {
                    return Ok(());
                };
                events = EventStream::new();
                let requests = app.on_message(edited);
                executor.run(requests, &mut screen, outbox)?;
            }
        }
    }
}

/// Takes over the terminal, and creates the app.
fn open(
    options: &ConsoleOptions,
    first: Arc<RuntimeSnapshot>,
) -> Result<(TerminalScreen, App, BackgroundQuery), ConsoleError> {
    let mouse = if options.mouse {
        MouseOwner::Console
    } else {
        MouseOwner::Terminal
    };
    let mut screen = TerminalScreen::set_up(options.toasts, mouse)?;
    let colorfgbg = std::env::var("COLORFGBG").ok();
    let appearance = Appearance {
        background: options.theme.background(None, colorfgbg.as_deref()),
        ..options.look
    };
    let answer = if options.theme == Theme::Auto && appearance.colour == ColourMode::Ansi {
        screen.send(background_query::BACKGROUND_QUERY)?;
        BackgroundQuery::with_query(options.clock.now())
    } else {
        BackgroundQuery::without_query()
    };
    let mut app = App::new(appearance, first, screen.size()?);
    app.set_mouse(mouse);
    if let Some(greeting) = &options.greeting {
        app.show_greeting(greeting);
    }
    Ok((screen, app, answer))
}

/// Signals that end the console.
struct QuitSignals {
    terminate: Signal,
    hangup: Signal,
    interrupt: Signal,
}

impl QuitSignals {
    fn new() -> Result<Self, ConsoleError> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for another program that uses the terminal. Returns `None` if a signal ends the console.
    /// An interrupt was meant for that program and is dropped.
    async fn wait_for_program<T>(&mut self, other: impl Future<Output = T>) -> Option<T> {
        let ended = tokio::select! {
            _ = self.terminate.recv() => None,
            _ = self.hangup.recv() => None,
            ended = other => Some(ended),
        };
        let _ = self.interrupt.recv().now_or_never();
        ended
    }

    async fn next_signal(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Executes the requests of the app.
struct RequestExecutor {
    operator_handle: OperatorHandle,
    sender: mpsc::Sender<ConsoleMessage>,
    quit_flag: QuitFlag,
    scenario_runner: Option<ScenarioRunner>,
    atlas_files: Option<AtlasFileSource>,
    configure: ManifestTransform,
}

impl Drop for RequestExecutor {
    fn drop(&mut self) {
        self.quit_flag.set();
    }
}

impl RequestExecutor {
    fn new(
        operator_handle: OperatorHandle,
        sender: mpsc::Sender<ConsoleMessage>,
        options: &ConsoleOptions,
    ) -> Self {
        Self {
            operator_handle,
            sender,
            quit_flag: QuitFlag::default(),
            scenario_runner: options.scenario_runner.clone(),
            atlas_files: options.atlas_files.clone(),
            configure: options.configure.clone(),
        }
    }

    fn run(
        &self,
        requests: Vec<ConsoleRequest>,
        screen: &mut TerminalScreen,
        outbox: &mut DraftOutbox,
    ) -> Result<LoopStep, ConsoleError> {
        for request in requests {
            match request {
                ConsoleRequest::Quit => return Ok(LoopStep::Quit),
                ConsoleRequest::Redraw => screen.clear()?,
                ConsoleRequest::Suspend => screen.suspend()?,
                ConsoleRequest::Notify(notice) => screen.notify(&notice)?,
                ConsoleRequest::Copy(text) => screen.copy(&text)?,
                ConsoleRequest::Mouse(mouse) => screen.set_mouse(mouse)?,
                ConsoleRequest::KeepDraft(gate, draft) => outbox.queue_draft(gate.into(), draft),
                ConsoleRequest::KeepThreadDraft(thread, draft) => {
                    outbox.queue_draft(thread.into(), draft);
                }
                ConsoleRequest::Edit(edit) => return Ok(LoopStep::Edit(EditorJob::Text(edit))),
                ConsoleRequest::EditThread(edit) => {
                    return Ok(LoopStep::Edit(EditorJob::Thread(edit)));
                }
                ConsoleRequest::EditFile(file, line) => {
                    return Ok(LoopStep::Edit(EditorJob::File(file, line)));
                }
                ConsoleRequest::Decide(_)
                | ConsoleRequest::Operate(_)
                | ConsoleRequest::ActOnThread(..)
                | ConsoleRequest::Snapshot(..)
                | ConsoleRequest::FindEvent(..)
                | ConsoleRequest::LoadSessions
                | ConsoleRequest::Read(_)
                | ConsoleRequest::LoadTrail { .. }
                | ConsoleRequest::Explain(..)
                | ConsoleRequest::Watch(_)
                | ConsoleRequest::Shadow(_)
                | ConsoleRequest::CheckFiles(_)
                | ConsoleRequest::CheckFolder(_)
                | ConsoleRequest::Load(_)
                | ConsoleRequest::Study(..)
                | ConsoleRequest::LayOut(_)
                | ConsoleRequest::Verify(_) => self.send(request),
            }
        }
        Ok(LoopStep::Continue)
    }

    /// Executes a request in its own task, so that a slow disk never delays a key. If the console
    /// quits meanwhile, only the response is lost: the runtime still executes the request.
    fn send(&self, request: ConsoleRequest) {
        let (operator_handle, sender) = (self.operator_handle.clone(), self.sender.clone());
        let left = self.quit_flag.clone();
        let sources = (
            self.scenario_runner.clone(),
            self.atlas_files.clone(),
            self.configure.clone(),
        );
        tokio::spawn(async move {
            if let Some(message) = execute(&operator_handle, request, left, sources).await {
                // If the console has quit, the response has no receiver.
                let _ = sender.send(message).await;
            }
        });
    }
}

async fn execute(
    operator_handle: &OperatorHandle,
    request: ConsoleRequest,
    left: QuitFlag,
    (scenario_runner, atlas_files, configure): (
        Option<ScenarioRunner>,
        Option<AtlasFileSource>,
        ManifestTransform,
    ),
) -> Option<ConsoleMessage> {
    match request {
        ConsoleRequest::Decide(decide) => {
            let gate = decide.gate.clone();
            Some(ConsoleMessage::Decided(
                gate,
                operator_handle.decide(decide).await,
            ))
        }
        ConsoleRequest::Operate(operate) => {
            let reply = operator_handle.operate(operate.clone()).await;
            Some(ConsoleMessage::Operated(operate, reply))
        }
        ConsoleRequest::ActOnThread(thread, act) => {
            let reply = operator_handle
                .act_on_thread(thread.clone(), act.clone())
                .await;
            Some(ConsoleMessage::ThreadActed(thread, act, reply))
        }
        ConsoleRequest::Snapshot(ticket, ask) => {
            let response = snapshot::answer(operator_handle, ask, left).await;
            Some(ConsoleMessage::Snapshot(ticket, response))
        }
        ConsoleRequest::FindEvent(session, event) => {
            let found =
                record_reader::find_event(operator_handle, session.clone(), event, left).await;
            Some(ConsoleMessage::EventFound(session, found))
        }
        ConsoleRequest::LoadSessions => Some(ConsoleMessage::Sessions(
            operator_handle.sessions_and_log().await,
        )),
        ConsoleRequest::Read(ask) => record_reader::answer(operator_handle, ask, left)
            .await
            .map(ConsoleMessage::Read),
        ConsoleRequest::LoadTrail {
            gate,
            session,
            from,
            limit,
            purpose,
        } => {
            let events = operator_handle.events(session, from, limit).await;
            Some(ConsoleMessage::Trail(gate, purpose, events))
        }
        ConsoleRequest::LayOut(wanted) => lay_out(wanted).await,
        ConsoleRequest::Verify(progress) => {
            let checked = operator_handle.verify_watched(progress).await.transpose();
            checked.map(ConsoleMessage::Verified)
        }
        ConsoleRequest::Explain(ticket, questions) => {
            Some(atlas::explain(operator_handle, ticket, questions).await)
        }
        ConsoleRequest::Watch(watch) => {
            operator_handle.set_watch(watch).await;
            None
        }
        ConsoleRequest::Shadow(load) => shadow(operator_handle, load).await,
        ConsoleRequest::CheckFiles(glances) => atlas::check_files(glances, configure).await,
        ConsoleRequest::CheckFolder(listing) => {
            atlas::check_folder(listing, atlas_files?, configure).await
        }
        ConsoleRequest::Load(load) => Some(ConsoleMessage::Loaded(
            operator_handle.load_atlases(load).await,
        )),
        ConsoleRequest::Study(ticket, wanted) => {
            let studied = study::run_study(operator_handle, wanted, scenario_runner, left).await;
            Some(ConsoleMessage::Studied(ticket, studied))
        }
        ConsoleRequest::Edit(_)
        | ConsoleRequest::EditThread(_)
        | ConsoleRequest::EditFile(..)
        | ConsoleRequest::KeepDraft(..)
        | ConsoleRequest::KeepThreadDraft(..)
        | ConsoleRequest::Notify(_)
        | ConsoleRequest::Copy(_)
        | ConsoleRequest::Mouse(_)
        | ConsoleRequest::Redraw
        | ConsoleRequest::Suspend
        | ConsoleRequest::Quit => None,
    }
}

/// Starts or stops shadow evaluation. The snapshots carry its results.
async fn shadow(
    operator_handle: &OperatorHandle,
    load: Option<AtlasLoad>,
) -> Option<ConsoleMessage> {
    operator_handle.set_shadow(load).await;
    None
}

/// Breaks a long text into rows on a blocking thread.
async fn lay_out(wanted: LayoutJob) -> Option<ConsoleMessage> {
    let laid = tokio::task::spawn_blocking(move || wanted.run()).await;
    laid.ok().map(ConsoleMessage::LaidOut)
}
