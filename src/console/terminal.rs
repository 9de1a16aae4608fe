//! Terminal: set up at the start and restored at the end.
//!
//! Contract: every exit (return, error, panic, signal) restores the terminal. The terminal keeps the
//! mouse, with which it selects and copies text, until the operator captures it for the console.

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
use super::request::{Bell, MouseOwner, TerminalNotice};
use crate::base::clock::Timestamp;
use crate::base::text::one_line;

/// True while the terminal is set up. Only then it is restored.
static TERMINAL_ACTIVE: AtomicBool = AtomicBool::new(false);

/// The terminal while the console uses it.
pub(crate) struct TerminalScreen {
    /// Never dropped: if the terminal was closed, dropping it would print an error to it, and panic.
    terminal: ManuallyDrop<Terminal<CrosstermBackend<Stdout>>>,
    toasts: ToastMethod,
    mouse: MouseOwner,
}

/// Method of desktop notifications.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToastMethod {
    /// Selected by the terminal's environment variables.
    #[default]
    Auto,
    /// Sent as OSC 9.
    Osc9,
    /// Sent as OSC 777.
    Osc777,
    /// Disabled; the bell and the title remain.
    Off,
}

/// Maximum length of a copied text: the limit of most terminals.
const MAX_CLIPBOARD_BYTES: usize = 64 * 1024;

impl TerminalScreen {
    /// Sets up the terminal.
    pub(crate) fn set_up(toasts: ToastMethod, mouse: MouseOwner) -> io::Result<Self> {
        restore_on_panic();
        enter()?;
        let terminal = Terminal::new(CrosstermBackend::new(stdout()))?;
        apply_mouse_capture(mouse)?;
        Ok(Self {
            terminal: ManuallyDrop::new(terminal),
            toasts: toasts.resolve(),
            mouse,
        })
    }

    /// Returns the size of the terminal.
    pub(crate) fn size(&self) -> io::Result<Rect> {
        let size = self.terminal.size()?;
        Ok(Rect::new(0, 0, size.width, size.height))
    }

    /// Paints the app, and returns the painted area.
    pub(crate) fn paint(&mut self, app: &App, now: Timestamp) -> io::Result<Rect> {
        // The terminal shows a frame all at once: half of one could be misread.
        execute!(self.terminal.backend_mut(), BeginSynchronizedUpdate)?;
        let painted = self
            .terminal
            .draw(|frame| app.draw(frame, now))
            .map(|painted| painted.area);
        execute!(self.terminal.backend_mut(), EndSynchronizedUpdate)?;
        painted
    }

    /// Invalidates the screen, so that the next paint is complete.
    pub(crate) fn clear(&mut self) -> io::Result<()> {
        // Not `Terminal::clear`: that queries the cursor position, and the reader of keys would
        // receive the response.
        let size = self.size()?;
        self.terminal.resize(size)
    }

    /// Rings the bell, sends the toast and sets the title.
    pub(crate) fn notify(&mut self, notice: &TerminalNotice) -> io::Result<()> {
        let out = self.terminal.backend_mut();
        if notice.bell == Bell::Ring {
            out.write_all(b"\x07")?;
        }
        if let Some(toast) = &notice.toast {
            out.write_all(osc_toast(self.toasts, toast).as_bytes())?;
        }
        execute!(out, SetTitle(&notice.title))
    }

    /// Sends a text that is not part of a frame.
    pub(crate) fn send(&mut self, text: &str) -> io::Result<()> {
        execute!(self.terminal.backend_mut(), Print(text))
    }

    /// Copies a text to the clipboard. A text that is too long for terminals is not sent.
    pub(crate) fn copy(&mut self, text: &str) -> io::Result<()> {
        if text.len() > MAX_CLIPBOARD_BYTES {
            return Ok(());
        }
        execute!(
            self.terminal.backend_mut(),
            CopyToClipboard::to_clipboard_from(text)
        )
    }

    /// Captures the mouse, or leaves it to the terminal.
    pub(crate) fn set_mouse(&mut self, mouse: MouseOwner) -> io::Result<()> {
        self.mouse = mouse;
        apply_mouse_capture(mouse)
    }

    /// Hands the terminal to another program until `other` ends.
    pub(crate) async fn run_in_terminal<T>(
        &mut self,
        other: impl Future<Output = T>,
    ) -> io::Result<T> {
        restore();
        let done = other.await;
        enter()?;
        apply_mouse_capture(self.mouse)?;
        self.clear()?;
        Ok(done)
    }

    /// Suspends the process until the shell resumes it.
    pub(crate) fn suspend(&mut self) -> io::Result<()> {
        restore();
        signal_hook::low_level::raise(SIGTSTP)?;
        enter()?;
        apply_mouse_capture(self.mouse)?;
        self.clear()
    }
}

impl Drop for TerminalScreen {
    fn drop(&mut self) {
        restore();
    }
}

impl ToastMethod {
    /// Resolves `Auto` from the terminal's environment variables.
    fn resolve(self) -> Self {
        let is =
            |name: &str, word: &str| std::env::var(name).is_ok_and(|value| value.contains(word));
        match self {
            Self::Auto if is("VTE_VERSION", "") || is("TERM", "rxvt") || is("TERM", "foot") => {
                Self::Osc777
            }
            Self::Auto => Self::Osc9,
            Self::Osc9 | Self::Osc777 | Self::Off => self,
        }
    }
}

/// Builds the escape sequence of a notification. The text is safe to show; a `;` would end a field of
/// OSC 777.
fn osc_toast(toasts: ToastMethod, text: &str) -> String {
    match toasts {
        ToastMethod::Off => String::new(),
        ToastMethod::Auto | ToastMethod::Osc9 => format!("\x1b]9;{}\x07", one_line(text)),
        ToastMethod::Osc777 => format!(
            "\x1b]777;notify;cra;{}\x07",
            one_line(text).replace(';', ",")
        ),
    }
}

fn apply_mouse_capture(mouse: MouseOwner) -> io::Result<()> {
    match mouse {
        MouseOwner::Console => execute!(stdout(), EnableMouseCapture),
        MouseOwner::Terminal => execute!(stdout(), DisableMouseCapture),
    }
}

/// Escape sequences that save and restore the window's title.
const PUSH_TITLE: &str = "\x1b[22;2t";
const POP_TITLE: &str = "\x1b[23;2t";

fn enter() -> io::Result<()> {
    enable_raw_mode()?;
    TERMINAL_ACTIVE.store(true, Ordering::SeqCst);
    execute!(
        stdout(),
        Print(PUSH_TITLE),
        EnterAlternateScreen,
        EnableBracketedPaste
    )
    .inspect_err(|_| restore())
}

fn restore() {
    if TERMINAL_ACTIVE.swap(false, Ordering::SeqCst) {
        // Errors cannot be reported any more, and each step is worth trying even if another fails.
        let _ = execute!(stdout(), DisableMouseCapture);
        let _ = execute!(stdout(), DisableBracketedPaste, LeaveAlternateScreen, Show);
        let _ = execute!(stdout(), Print(POP_TITLE));
        let _ = disable_raw_mode();
    }
}

/// Restores the terminal before a panic's message is printed: on the alternate screen it would vanish.
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
    fn a_toast_text_cannot_end_the_escape_sequence_or_start_another() {
        let hostile = "rm\x07\x1b]0;x;y";
        for toasts in [ToastMethod::Osc9, ToastMethod::Osc777] {
            let sent = osc_toast(toasts, hostile);
            assert_eq!(sent.matches('\x1b').count(), 1, "{sent:?}");
            assert_eq!(sent.matches('\x07').count(), 1, "{sent:?}");
        }
        assert_eq!(
            osc_toast(ToastMethod::Osc777, "a;b"),
            "\x1b]777;notify;cra;a,b\x07"
        );
        assert_eq!(osc_toast(ToastMethod::Off, "a"), "");
    }
}
