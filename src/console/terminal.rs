//! The terminal, taken and given back.
//!
//! Contract: on every way out (return, error, panic, signal) it is as it was found. No mouse is
//! captured, so that selecting and copying text works as everywhere else.

use std::io::{self, Stdout, Write as _, stdout};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::clipboard::CopyToClipboard;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use ratatui::crossterm::execute;
use ratatui::crossterm::style::Print;
use ratatui::crossterm::terminal::{
    BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen,
    SetTitle, disable_raw_mode, enable_raw_mode,
};
use ratatui::layout::Rect;
use signal_hook::consts::SIGTSTP;

use super::app::App;
use super::request::{Bell, Notice};
use crate::base::clock::Timestamp;

/// Whether the terminal is taken: what was not taken is not given back.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The terminal while the console has it.
pub(crate) struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Screen {
    /// Takes the terminal.
    pub(crate) fn take() -> io::Result<Self> {
        restore_on_panic();
        enter()?;
        let terminal = Terminal::new(CrosstermBackend::new(stdout()))?;
        Ok(Self { terminal })
    }

    /// How large it is.
    pub(crate) fn size(&self) -> io::Result<Rect> {
        let size = self.terminal.size()?;
        Ok(Rect::new(0, 0, size.width, size.height))
    }

    /// Paints the app, and tells where.
    pub(crate) fn paint(&mut self, app: &App, now: Timestamp) -> io::Result<Rect> {
        // The terminal shows the whole picture at once: half of one could be misread.
        execute!(self.terminal.backend_mut(), BeginSynchronizedUpdate)?;
        let painted = self
            .terminal
            .draw(|frame| app.draw(frame, now))
            .map(|painted| painted.area);
        execute!(self.terminal.backend_mut(), EndSynchronizedUpdate)?;
        painted
    }

    /// Forgets what is on the screen, so that all of it is painted anew.
    pub(crate) fn clear(&mut self) -> io::Result<()> {
        // Not `Terminal::clear`: that asks the terminal where its cursor is, and the answer would
        // be read by whoever waits for keys.
        let size = self.size()?;
        self.terminal.resize(size)
    }

    /// Rings and sets the title.
    pub(crate) fn notify(&mut self, notice: &Notice) -> io::Result<()> {
        let out = self.terminal.backend_mut();
        if notice.bell == Bell::Ring {
            out.write_all(b"\x07")?;
        }
        execute!(out, SetTitle(&notice.title))
    }

    /// Gives the terminal to somebody else until they are done.
    pub(crate) async fn lend<T>(&mut self, other: impl Future<Output = T>) -> io::Result<T> {
        restore();
        let done = other.await;
        enter()?;
        self.clear()?;
        Ok(done)
    }

    /// Hands a text to whatever the terminal pastes from.
    pub(crate) fn copy(&mut self, text: &str) -> io::Result<()> {
        let out = self.terminal.backend_mut();
        execute!(out, CopyToClipboard::to_clipboard_from(text))
    }

    /// Stops the process until the shell brings it back.
    pub(crate) fn suspend(&mut self) -> io::Result<()> {
        restore();
        signal_hook::low_level::raise(SIGTSTP)?;
        enter()?;
        self.clear()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Saves the window's title, and brings it back.
const PUSH_TITLE: &str = "\x1b[22;2t";
const POP_TITLE: &str = "\x1b[23;2t";

fn enter() -> io::Result<()> {
    enable_raw_mode()?;
    TAKEN.store(true, Ordering::SeqCst);
    execute!(
        stdout(),
        Print(PUSH_TITLE),
        EnterAlternateScreen,
        EnableBracketedPaste
    )
    .inspect_err(|_| restore())
}

fn restore() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        // There is nobody left to tell, and each step is worth trying on its own.
        let _ = execute!(stdout(), DisableBracketedPaste, LeaveAlternateScreen, Show);
        let _ = execute!(stdout(), Print(POP_TITLE));
        let _ = disable_raw_mode();
    }
}

/// A panic's message must not land on the alternate screen, where it would vanish.
fn restore_on_panic() {
    static HOOKED: Once = Once::new();
    HOOKED.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            before(panic);
        }));
    });
}
