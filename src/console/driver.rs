//! Driver: waits for events, executes the app's requests, and feeds the results back.

use std::sync::Arc;

use futures_util::{FutureExt as _, StreamExt as _};
use ratatui::crossterm::event::EventStream;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use self::editor::Editing;
use self::ground::{Answer, Taken};
use self::outbox::Outbox;
use self::record::Left;
use super::alarm::Alarms;
use super::app::App;
use super::dialog::gate::LayOut;
use super::layer::Repaint;
use super::request::{Message, Mouse, Request};
use super::terminal::Screen;
use super::theme::{Colour, Look, Theme};
use super::{ConsoleError, Options, Shelf, Trials};
use crate::atlas::Configure;
use crate::runtime::snapshot::Snapshot;
use crate::runtime::{Desk, Load};

pub(super) mod atlas;
mod editor;
mod ground;
mod outbox;
pub(super) mod record;
pub(super) mod snapshot;
pub(super) mod study;

/// Maximum number of results that wait for the app. If the queue is full, the sending task waits.
const MESSAGE_QUEUE: usize = 64;

/// Next step of the console's main loop.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Flow {
    On,
    Over,
    /// Run an external editor, then continue.
    Edit(Editing),
}

/// State of the screen compared with the app.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Picture {
    Current,
    Outdated,
}

/// Runs the console until it ends.
pub(super) async fn drive(desk: Desk, options: Options) -> Result<(), ConsoleError> {
    let mut outbox = Outbox::new(desk.clone());
    let ended = run(desk, options, &mut outbox).await;
    // The terminal is restored by now. The last draft must be saved too.
    outbox.finish().await;
    ended.or_else(ConsoleError::unless_gone)
}

async fn run(desk: Desk, options: Options, outbox: &mut Outbox) -> Result<(), ConsoleError> {
    let mut signals = Signals::new()?;
    let mut snapshots = desk.snapshots();
    let first = Arc::clone(&snapshots.borrow_and_update());
    let (mut screen, mut app, mut answer) = open(&options, first)?;
    let (sender, mut messages) = mpsc::channel(MESSAGE_QUEUE);
    let errands = Errands::new(desk, sender, &options);
    let mut alarms = options.alarms.clone();
    let mut events = EventStream::new();
    let mut picture = Picture::Outdated;
    errands.run(app.begin(), &mut screen, outbox)?;
    loop {
        let now = options.clock.now();
        let requests = tokio::select! {
            biased;
            // A signal to end comes first: the terminal must be restored.
            () = signals.any() => return Ok(()),
            // Results of decisions and new snapshots come before keys: a key is judged against the
            // newest state, so that no settled request is decided again.
            Some(message) = messages.recv() => app.on_message(message),
            changed = snapshots.changed() => {
                changed.map_err(|_| ConsoleError::Stopped)?;
                // A burst of changes leaves one snapshot, the newest.
                let snapshot = Arc::clone(&snapshots.borrow_and_update());
                app.on_snapshot(snapshot)
            }
            told = Alarms::next(&mut alarms) => app.on_alarms(told),
            event = events.next() => match event {
                Some(event) => match answer.take(event?, now) {
                    Taken::Events(events) => app.on_events(&events, options.clock.now()),
                    Taken::Ground(ground) => app.on_ground(ground),
                },
                // The terminal was closed; held requests stay held.
                None => return Ok(()),
            },
            // Drafts are sent before painting, so that typed text is not lost. This changes nothing on
            // screen.
            () = outbox.hand_over(), if !outbox.is_empty() => continue,
            // Painting comes last, if nothing above is ready: a burst is painted once. Nothing above
            // can starve it, because keys and results arrive one at a time, from people and from
            // earlier requests.
            () = std::future::ready(()), if picture == Picture::Outdated => {
                app.on_queued(errands.desk.queued());
                let area = screen.paint(&app, now)?;
                picture = match app.on_drawn(area, options.clock.now()) {
                    Repaint::Yes => Picture::Outdated,
                    Repaint::No => Picture::Current,
                };
                continue;
            }
            // Only if the screen is current, so that this wait never delays a paint.
            () = options.clock.sleep_until(app.next_change(now)) => app.on_tick(options.clock.now()),
        };
        picture = Picture::Outdated;
        match errands.run(requests, &mut screen, outbox)? {
            Flow::On => {}
            Flow::Over => return Ok(()),
            Flow::Edit(editing) => {
                // A reader of keys here would take them from the editor.
                drop(events);
                let Some(edited) = screen.lend(signals.during(editing.run())).await? else {
                    return Ok(());
                };
                events = EventStream::new();
                let requests = app.on_message(edited);
                errands.run(requests, &mut screen, outbox)?;
            }
        }
    }
}

/// Takes over the terminal, and creates the app.
fn open(options: &Options, first: Arc<Snapshot>) -> Result<(Screen, App, Answer), ConsoleError> {
    let mouse = if options.mouse {
        Mouse::Console
    } else {
        Mouse::Terminal
    };
    let mut screen = Screen::take(options.toasts, mouse)?;
    let colorfgbg = std::env::var("COLORFGBG").ok();
    let look = Look {
        ground: options.theme.ground(None, colorfgbg.as_deref()),
        ..options.look
    };
    let answer = if options.theme == Theme::Auto && look.colour == Colour::Ansi {
        screen.send(ground::ASK)?;
        Answer::asked(options.clock.now())
    } else {
        Answer::unasked()
    };
    let mut app = App::new(look, first, screen.size()?);
    app.set_mouse(mouse);
    if let Some(greeting) = &options.greeting {
        app.greet(greeting);
    }
    Ok((screen, app, answer))
}

/// Signals that end the console.
struct Signals {
    terminate: Signal,
    hangup: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> Result<Self, ConsoleError> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for another program that uses the terminal. Returns `None` if a signal ends the console.
    /// An interrupt was meant for that program and is dropped.
    async fn during<T>(&mut self, other: impl Future<Output = T>) -> Option<T> {
        let ended = tokio::select! {
            _ = self.terminate.recv() => None,
            _ = self.hangup.recv() => None,
            ended = other => Some(ended),
        };
        let _ = self.interrupt.recv().now_or_never();
        ended
    }

    async fn any(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Executes the requests of the app.
struct Errands {
    desk: Desk,
    sender: mpsc::Sender<Message>,
    left: Left,
    trials: Option<Trials>,
    shelf: Option<Shelf>,
    configure: Configure,
}

impl Drop for Errands {
    fn drop(&mut self) {
        self.left.leave();
    }
}

impl Errands {
    fn new(desk: Desk, sender: mpsc::Sender<Message>, options: &Options) -> Self {
        Self {
            desk,
            sender,
            left: Left::default(),
            trials: options.trials.clone(),
            shelf: options.shelf.clone(),
            configure: options.configure.clone(),
        }
    }

    fn run(
        &self,
        requests: Vec<Request>,
        screen: &mut Screen,
        outbox: &mut Outbox,
    ) -> Result<Flow, ConsoleError> {
        for request in requests {
            match request {
                Request::Quit => return Ok(Flow::Over),
                Request::Redraw => screen.clear()?,
                Request::Suspend => screen.suspend()?,
                Request::Notify(notice) => screen.notify(&notice)?,
                Request::Copy(text) => screen.copy(&text)?,
                Request::Mouse(mouse) => screen.set_mouse(mouse)?,
                Request::KeepDraft(gate, draft) => outbox.put(gate.into(), draft),
                Request::KeepThreadDraft(thread, draft) => outbox.put(thread.into(), draft),
                Request::Edit(edit) => return Ok(Flow::Edit(Editing::Text(edit))),
                Request::EditThread(edit) => return Ok(Flow::Edit(Editing::Thread(edit))),
                Request::EditFile(file, line) => {
                    return Ok(Flow::Edit(Editing::File(file, line)));
                }
                Request::Decide(_)
                | Request::Operate(_)
                | Request::ActOnThread(..)
                | Request::Snapshot(..)
                | Request::FindEvent(..)
                | Request::LoadSessions
                | Request::Read(_)
                | Request::LoadTrail { .. }
                | Request::Explain(..)
                | Request::Watch(_)
                | Request::Shadow(_)
                | Request::Glance(_)
                | Request::List(_)
                | Request::Load(_)
                | Request::Study(..)
                | Request::LayOut(_)
                | Request::Verify(_) => self.send(request),
            }
        }
        Ok(Flow::On)
    }

    /// Executes a request in its own task, so that a slow disk never delays a key. If the console
    /// quits meanwhile, only the response is lost: the runtime still executes the request.
    fn send(&self, request: Request) {
        let (desk, sender) = (self.desk.clone(), self.sender.clone());
        let left = self.left.clone();
        let beside = (
            self.trials.clone(),
            self.shelf.clone(),
            self.configure.clone(),
        );
        tokio::spawn(async move {
            if let Some(message) = answer(&desk, request, left, beside).await {
                // If the console has quit, the response has no receiver.
                let _ = sender.send(message).await;
            }
        });
    }
}

async fn answer(
    desk: &Desk,
    request: Request,
    left: Left,
    (trials, shelf, configure): (Option<Trials>, Option<Shelf>, Configure),
) -> Option<Message> {
    match request {
        Request::Decide(decide) => {
            let gate = decide.gate.clone();
            Some(Message::Decided(gate, desk.decide(decide).await))
        }
        Request::Operate(operate) => {
            let reply = desk.operate(operate.clone()).await;
            Some(Message::Operated(operate, reply))
        }
        Request::ActOnThread(thread, act) => {
            let reply = desk.act_on_thread(thread.clone(), act.clone()).await;
            Some(Message::ThreadActed(thread, act, reply))
        }
        Request::Snapshot(ticket, ask) => {
            let told = snapshot::answer(desk, ask, left).await;
            Some(Message::Snapshot(ticket, told))
        }
        Request::FindEvent(session, event) => {
            let found = record::find(desk, session.clone(), event, left).await;
            Some(Message::EventFound(session, found))
        }
        Request::LoadSessions => Some(Message::Sessions(desk.sessions_and_log().await)),
        Request::Read(ask) => record::answer(desk, ask, left).await.map(Message::Read),
        Request::LoadTrail {
            gate,
            session,
            from,
            limit,
            purpose,
        } => {
            let events = desk.events(session, from, limit).await;
            Some(Message::Trail(gate, purpose, events))
        }
        Request::LayOut(wanted) => lay_out(wanted).await,
        Request::Verify(progress) => {
            let checked = desk.verify_watched(progress).await.transpose();
            checked.map(Message::Verified)
        }
        Request::Explain(ticket, questions) => Some(atlas::explain(desk, ticket, questions).await),
        Request::Watch(watch) => {
            desk.watch(watch).await;
            None
        }
        Request::Shadow(load) => shadow(desk, load).await,
        Request::Glance(glances) => atlas::glance(glances, configure).await,
        Request::List(listing) => atlas::list(listing, shelf?, configure).await,
        Request::Load(load) => Some(Message::Loaded(desk.load(load).await)),
        Request::Study(ticket, wanted) => {
            let studied = study::study(desk, wanted, trials, left).await;
            Some(Message::Studied(ticket, studied))
        }
        Request::Edit(_)
        | Request::EditThread(_)
        | Request::EditFile(..)
        | Request::KeepDraft(..)
        | Request::KeepThreadDraft(..)
        | Request::Notify(_)
        | Request::Copy(_)
        | Request::Mouse(_)
        | Request::Redraw
        | Request::Suspend
        | Request::Quit => None,
    }
}

/// Starts or stops shadow evaluation. The snapshots carry its results.
async fn shadow(desk: &Desk, load: Option<Load>) -> Option<Message> {
    desk.shadow(load).await;
    None
}

/// Breaks a long text into rows on a blocking thread.
async fn lay_out(wanted: LayOut) -> Option<Message> {
    let laid = tokio::task::spawn_blocking(move || wanted.run()).await;
    laid.ok().map(Message::LaidOut)
}
