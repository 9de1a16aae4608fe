//! The terminal, taken and given back.
//!
//! Contract: on every way out (return, error, panic, signal) it is as it was found. The mouse is left to
//! the terminal, which selects and copies text with it, until somebody asks for it.

use std::io::{self, Stdout, Write as _, stdout};
use std::mem::ManuallyDrop;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::clipboard::CopyToClipboard;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{
    DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture,
};
use ratatui::crossterm::execute;
use ratatui::crossterm::style::Print;
use ratatui::crossterm::terminal::{
    BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen,
    SetTitle, disable_raw_mode, enable_raw_mode,
};
use ratatui::layout::Rect;
use signal_hook::consts::SIGTSTP;

use super::app::App;
use super::request::{Bell, Mouse, Notice};
use crate::base::clock::Timestamp;
use crate::base::text::one_line;

/// Whether the terminal is taken: what was not taken is not given back.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The terminal while the console has it.
pub(crate) struct Screen {
    /// Never dropped: where its terminal is gone, dropping it would print an error to that terminal, and panic.
    terminal: ManuallyDrop<Terminal<CrosstermBackend<Stdout>>>,
    toasts: Toasts,
    mouse: Mouse,
}

/// How the desktop is told that something arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Toasts {
    /// In the way this terminal is known to understand.
    #[default]
    Auto,
    /// By OSC 9.
    Osc9,
    /// By OSC 777.
    Osc777,
    /// Not at all; the bell and the title remain.
    Off,
}

/// Longest text that is copied: what most terminals take.
const MOST_COPIED: usize = 64 * 1024;

impl Screen {
    /// Takes the terminal.
    pub(crate) fn take(toasts: Toasts, mouse: Mouse) -> io::Result<Self> {
        restore_on_panic();
        enter()?;
        let terminal = Terminal::new(CrosstermBackend::new(stdout()))?;
        take_mouse(mouse)?;
        Ok(Self {
            terminal: ManuallyDrop::new(terminal),
            toasts: toasts.known(),
            mouse,
        })
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
        if let Some(toast) = &notice.toast {
            out.write_all(osc_toast(self.toasts, toast).as_bytes())?;
        }
        execute!(out, SetTitle(&notice.title))
    }

    /// Sends what is no part of the picture.
    pub(crate) fn send(&mut self, text: &str) -> io::Result<()> {
        execute!(self.terminal.backend_mut(), Print(text))
    }

    /// Puts a text where other programs paste from. What is too long for terminals is not sent.
    pub(crate) fn copy(&mut self, text: &str) -> io::Result<()> {
        if text.len() > MOST_COPIED {
            return Ok(());
        }
        execute!(
            self.terminal.backend_mut(),
            CopyToClipboard::to_clipboard_from(text)
        )
    }

    /// Takes the mouse, or leaves it to the terminal.
    pub(crate) fn set_mouse(&mut self, mouse: Mouse) -> io::Result<()> {
        self.mouse = mouse;
        take_mouse(mouse)
    }

    /// Gives the terminal to somebody else until they are done.
    pub(crate) async fn lend<T>(&mut self, other: impl Future<Output = T>) -> io::Result<T> {
        restore();
        let done = other.await;
        enter()?;
        take_mouse(self.mouse)?;
        self.clear()?;
        Ok(done)
    }

    /// Stops the process until the shell brings it back.
    pub(crate) fn suspend(&mut self) -> io::Result<()> {
        restore();
        signal_hook::low_level::raise(SIGTSTP)?;
        enter()?;
        take_mouse(self.mouse)?;
        self.clear()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

impl Toasts {
    /// The way that is used, from what the terminal says about itself.
    fn known(self) -> Self {
        let is = |name: &str, word: &str| std::env::var(name).is_ok_and(|it| it.contains(word));
        match self {
            Self::Auto if is("VTE_VERSION", "") || is("TERM", "rxvt") || is("TERM", "foot") => {
                Self::Osc777
            }
            Self::Auto => Self::Osc9,
            Self::Osc9 | Self::Osc777 | Self::Off => self,
        }
    }
}

/// What tells the desktop. The text is safe to show; a `;` would end a field of OSC 777.
fn osc_toast(toasts: Toasts, text: &str) -> String {
    match toasts {
        Toasts::Off => String::new(),
        Toasts::Auto | Toasts::Osc9 => format!("\x1b]9;{}\x07", one_line(text)),
        Toasts::Osc777 => format!(
            "\x1b]777;notify;cra;{}\x07",
            one_line(text).replace(';', ",")
        ),
    }
}

fn take_mouse(mouse: Mouse) -> io::Result<()> {
    match mouse {
        Mouse::Console => execute!(stdout(), EnableMouseCapture),
        Mouse::Terminal => execute!(stdout(), DisableMouseCapture),
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
        let _ = execute!(stdout(), DisableMouseCapture);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_toast_cannot_end_early_or_say_more_than_its_text() {
        let hostile = "rm\x07\x1b]0;x;y";
        for toasts in [Toasts::Osc9, Toasts::Osc777] {
            let sent = osc_toast(toasts, hostile);
            assert_eq!(sent.matches('\x1b').count(), 1, "{sent:?}");
            assert_eq!(sent.matches('\x07').count(), 1, "{sent:?}");
        }
        assert_eq!(
            osc_toast(Toasts::Osc777, "a;b"),
            "\x1b]777;notify;cra;a,b\x07"
        );
        assert_eq!(osc_toast(Toasts::Off, "a"), "");
    }
}
