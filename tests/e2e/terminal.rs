//! A terminal with the program in it.
//!
//! A thread feeds what the program writes to a terminal emulator; tests wait on a condition variable
//! until the screen shows what they want, with a deadline that only a broken program misses. A frame
//! that is still being painted is never looked at.

use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

/// Longest wait, on the slowest machine. A test that passes never waits for it.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// Around each frame that the program paints.
const FRAME_BEGINS: &[u8] = b"\x1b[?2026h";
const FRAME_ENDS: &[u8] = b"\x1b[?2026l";

/// Width and height, in cells.
pub(crate) type Size = (u16, u16);

/// A terminal with the program in it. Dropping it ends the program, and no other.
pub(crate) struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    /// None of these is there any more once the terminal was closed.
    master: Option<Box<dyn MasterPty + Send>>,
    writer: Option<Box<dyn Write + Send>>,
    feeder: Option<JoinHandle<()>>,
    shared: Arc<Shared>,
    /// The settings of the line before the program started.
    line: String,
    reaped: bool,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    parser: vt100::Parser,
    /// Everything the program wrote.
    raw: Vec<u8>,
    /// The program has let go of the terminal.
    over: bool,
    /// The terminal is to be closed: nothing more is read.
    closing: bool,
    /// The emulator could not make sense of what was written.
    gave_up: bool,
}

/// Content of the terminal at one moment.
pub(crate) struct View<'a> {
    pub(crate) screen: &'a vt100::Screen,
    raw: &'a [u8],
}

impl View<'_> {
    /// The screen, row by row.
    pub(crate) fn text(&self) -> String {
        let (_, columns) = self.screen.size();
        let rows: Vec<_> = self.screen.rows(0, columns.get()).collect();
        rows.join("\n")
    }

    /// Tells whether a text is on the screen.
    pub(crate) fn shows(&self, text: &str) -> bool {
        self.text().contains(text)
    }

    /// Number of times that a text was written since the program began.
    pub(crate) fn written(&self, text: &str) -> usize {
        String::from_utf8_lossy(self.raw).matches(text).count()
    }

    /// The character in a cell.
    pub(crate) fn cell(&self, row: u16, column: u16) -> &str {
        self.screen
            .cell(row, column)
            .map_or("", vt100::Cell::contents)
    }
}

impl Terminal {
    /// Starts a command in a terminal of its own.
    pub(crate) fn start(command: CommandBuilder, size: Size) -> Self {
        let pair = native_pty_system().openpty(pty_size(size)).unwrap();
        let line = line_settings(pair.master.as_ref());
        let mut reader = pair.master.try_clone_reader().unwrap();
        let writer = pair.master.take_writer().unwrap();
        let child = pair.slave.spawn_command(command).unwrap();
        // Only the program holds its side now, so that the reader sees when it lets go.
        drop(pair.slave);
        let (rows, columns) = cells(size);
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                parser: vt100::Parser::new(rows, columns, 0),
                raw: Vec::new(),
                over: false,
                closing: false,
                gave_up: false,
            }),
            changed: Condvar::new(),
        });
        let feeding = Arc::clone(&shared);
        let feeder = std::thread::spawn(move || feed(&mut reader, &feeding));
        Self {
            child,
            master: Some(pair.master),
            writer: Some(writer),
            feeder: Some(feeder),
            shared,
            line,
            reaped: false,
        }
    }

    /// Sends bytes as a keyboard would, all at once.
    pub(crate) fn keys(&mut self, bytes: &str) {
        let writer = self.writer.as_mut().unwrap();
        writer.write_all(bytes.as_bytes()).unwrap();
        writer.flush().unwrap();
    }

    pub(crate) fn enter(&mut self) {
        self.keys("\r");
    }

    pub(crate) fn tabs(&mut self, times: usize) {
        self.keys(&"\t".repeat(times));
    }

    /// Escape. Wait for its effect before the next key: together they would be another key.
    pub(crate) fn esc(&mut self) {
        self.keys("\x1b");
    }

    pub(crate) fn f1(&mut self) {
        self.keys("\x1bOP");
    }

    pub(crate) fn backspace(&mut self, times: usize) {
        self.keys(&"\x7f".repeat(times));
    }

    pub(crate) fn ctrl(&mut self, letter: char) {
        let code = char::from(u8::try_from(letter).unwrap() & 0x1f);
        self.keys(&code.to_string());
    }

    /// A paste: marked as one if the program asked for that, as keys otherwise.
    pub(crate) fn paste(&mut self, text: &str) {
        if self.lock().parser.screen().bracketed_paste() {
            self.keys(&format!("\x1b[200~{text}\x1b[201~"));
        } else {
            self.keys(text);
        }
    }

    /// Gives the terminal another size.
    pub(crate) fn resize(&mut self, size: Size) {
        let (rows, columns) = cells(size);
        self.lock().parser.set_size(rows, columns);
        let master = self.master.as_ref().unwrap();
        master.resize(pty_size(size)).unwrap();
    }

    /// Waits until the screen gives what is wanted.
    #[track_caller]
    pub(crate) fn wait<T>(&self, what: &str, wanted: impl Fn(&View) -> Option<T>) -> T {
        let deadline = Instant::now() + DEADLINE;
        let mut state = self.lock();
        loop {
            let view = state.view();
            if let Some(found) = (state.over || !in_frame(&state.raw))
                .then(|| wanted(&view))
                .flatten()
            {
                return found;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if state.over || state.gave_up || left.is_zero() {
                let why = match (state.gave_up, state.over) {
                    (true, _) => "the emulator gave up",
                    (false, true) => "the program ended",
                    (false, false) => "time is up",
                };
                panic!("{why}, and never: {what}\n{}", view.text());
            }
            state = self
                .shared
                .changed
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    #[track_caller]
    pub(crate) fn wait_until(&self, what: &str, wanted: impl Fn(&View) -> bool) {
        self.wait(what, |view| wanted(view).then_some(()));
    }

    #[track_caller]
    pub(crate) fn wait_for(&self, text: &str) {
        self.wait_until(&format!("`{text}`"), |view| view.shows(text));
    }

    #[track_caller]
    pub(crate) fn wait_without(&self, text: &str) {
        self.wait_until(&format!("without `{text}`"), |view| !view.shows(text));
    }

    /// Current text of the screen.
    pub(crate) fn text(&self) -> String {
        self.lock().view().text()
    }

    /// Everything that was written to the terminal.
    pub(crate) fn raw(&self) -> Vec<u8> {
        self.lock().raw.clone()
    }

    pub(crate) fn process_id(&self) -> u32 {
        self.child.process_id().unwrap()
    }

    /// Sends the program a signal.
    pub(crate) fn signal(&self, name: &str) {
        // INVARIANT: the child was not reaped, so that its number is still its own.
        assert!(!self.reaped);
        let id = self.process_id().to_string();
        let sent = Command::new("sh")
            .args(["-c", "kill -s \"$0\" \"$1\"", name, &id])
            .status();
        assert!(sent.unwrap().success());
    }

    /// Closes the terminal under the program, as a window that is closed, and tells the exit code. `stir` makes the
    /// program write something: only then the reader lets go of its handle, which would keep the terminal open.
    #[track_caller]
    pub(crate) fn close(&mut self, stir: impl FnOnce(&mut Self)) -> u32 {
        self.lock().closing = true;
        stir(self);
        self.feeder.take().unwrap().join().unwrap();
        self.writer = None;
        self.master = None;
        let deadline = Instant::now() + DEADLINE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                self.reaped = true;
                return status.exit_code();
            }
            assert!(Instant::now() < deadline, "it never ended");
            std::thread::yield_now();
        }
    }

    /// Ends the program without letting it do anything about it.
    pub(crate) fn kill9(&mut self) {
        self.signal("KILL");
        self.wait_exit();
    }

    /// Waits until the program has ended, and tells its exit code.
    #[track_caller]
    pub(crate) fn wait_exit(&mut self) -> u32 {
        let deadline = Instant::now() + DEADLINE;
        let mut state = self.lock();
        while !state.over {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "it never ended:\n{}", state.view().text());
            state = self
                .shared
                .changed
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        drop(state);
        let status = self.child.wait().unwrap();
        self.reaped = true;
        status.exit_code()
    }

    /// Asserts that the terminal is as the program found it.
    #[track_caller]
    pub(crate) fn assert_restored(&self) {
        let state = self.lock();
        let view = state.view();
        let screen = view.screen;
        assert!(!screen.alternate_screen(), "alternate:\n{}", view.text());
        assert!(!screen.hide_cursor(), "the cursor is hidden");
        assert!(!screen.bracketed_paste(), "pastes are still marked");
        assert_eq!(line_settings(self.master.as_deref().unwrap()), self.line);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if !self.reaped {
            self.signal("KILL");
            let _ = self.child.wait();
        }
    }
}

impl State {
    fn view(&self) -> View<'_> {
        View {
            screen: self.parser.screen(),
            raw: &self.raw,
        }
    }
}

fn feed(reader: &mut dyn Read, shared: &Shared) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        // A terminal whose other side is closed gives an error instead of an end.
        let count = reader.read(&mut buffer).unwrap_or(0);
        let mut state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.raw.extend_from_slice(&buffer[..count]);
        let parser = &mut state.parser;
        let fed = catch_unwind(AssertUnwindSafe(|| parser.process(&buffer[..count])));
        state.gave_up |= fed.is_err();
        state.over = count == 0;
        shared.changed.notify_all();
        if count == 0 || state.closing {
            return;
        }
    }
}

/// Tells whether a frame was begun and is not finished.
fn in_frame(raw: &[u8]) -> bool {
    let last = |mark: &[u8]| raw.windows(mark.len()).rposition(|window| window == mark);
    last(FRAME_BEGINS) > last(FRAME_ENDS)
}

/// Line settings of the terminal: raw while the program has it.
fn line_settings(master: &dyn MasterPty) -> String {
    format!("{:?}", master.get_termios().unwrap())
}

fn cells((width, height): Size) -> (NonZeroU16, NonZeroU16) {
    (
        NonZeroU16::new(height).unwrap(),
        NonZeroU16::new(width).unwrap(),
    )
}

fn pty_size((width, height): Size) -> PtySize {
    PtySize {
        rows: height,
        cols: width,
        pixel_width: 0,
        pixel_height: 0,
    }
}
