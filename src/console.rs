//! The terminal console: what operators see and press.
//!
//! `App` is a pure state machine: terminal events, snapshots and messages go in, requests come out,
//! and it paints itself from what it knows. The driver is the only part that waits, sends and
//! writes. This room sees the runtime through its [`Desk`] and plain data; it
//! knows neither the store nor the doors agents come through.
//!
//! Contract: a decision leaves this room only because Enter was pressed on a focused, enabled button
//! of the dialog that shows the very request it is about.

use std::path::PathBuf;
use std::sync::Arc;

use crate::atlas::Configure;
use crate::base::clock::Clock;
use crate::runtime::Desk;

mod alarm;
mod app;
mod cells;
mod chrome;
mod dialog;
mod driver;
mod evidence;
mod json;
mod keymap;
mod layer;
mod line;
mod linear;
#[doc(hidden)]
pub mod measured;
mod request;
mod screen;
mod study;
mod terminal;
#[cfg(test)]
mod tests;
mod theme;
mod thread;

pub use alarm::Alarms;
pub use keymap::markdown as key_table;
#[doc(hidden)]
pub use terminal::Toasts;
pub use theme::{Colour, Glyphs, Ground, Look, Theme};

/// How the console is run.
#[derive(Clone)]
pub struct Options {
    /// How it looks.
    pub look: Look,
    /// Colours for which background.
    pub theme: Theme,
    /// How the desktop is told that something arrived.
    pub toasts: Toasts,
    /// Whether the mouse is taken from the start.
    pub mouse: bool,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// What plays the scenarios beside Atlas files, where something does.
    pub trials: Option<Trials>,
    /// Where Atlases are loaded from, where that can change.
    pub shelf: Option<Shelf>,
    /// Changes to manifests before they are proven.
    pub configure: Configure,
    /// What raises alarms, where something does.
    pub alarms: Option<Alarms>,
    /// What is said when it opens, until a key is pressed.
    pub greeting: Option<String>,
}

/// Plays the scenarios that lie beside Atlas files. It reads files and waits for them.
#[derive(Clone)]
pub struct Trials(pub Arc<Play>);

/// Plays what lies beside these files.
pub type Play = dyn Fn(&[PathBuf]) -> Vec<Trial> + Send + Sync;

/// Tells which files Atlases are loaded from, in their order, as it is now; or why nobody can say.
#[derive(Clone)]
pub struct Shelf(pub Arc<List>);

/// Tells which files there are.
pub type List = dyn Fn() -> Result<Vec<PathBuf>, String> + Send + Sync;

impl std::fmt::Debug for Shelf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shelf").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Trials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trials").finish_non_exhaustive()
    }
}

/// What a scenario said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// Its file.
    pub file: PathBuf,
    /// How many steps it has.
    pub steps: usize,
    /// What did not go as expected.
    pub failed: Vec<FailedStep>,
}

/// Something that did not go as expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedStep {
    /// The line of the step.
    pub line: Option<usize>,
    /// What was wanted, and what came.
    pub what: String,
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("look", &self.look)
            .finish_non_exhaustive()
    }
}

/// Why the console ended other than by the operator's wish.
#[derive(Debug, thiserror::Error)]
pub enum ConsoleError {
    /// The terminal cannot be read, written or set up.
    #[error("the terminal failed: {0}")]
    Terminal(#[from] std::io::Error),
    /// The runtime is gone.
    #[error("the runtime stopped")]
    Stopped,
}

impl ConsoleError {
    /// Tells whether the terminal was closed: the operator has left, which is no failure.
    fn is_terminal_gone(&self) -> bool {
        matches!(self, Self::Terminal(error) if is_terminal_gone(error))
    }

    /// Ends the console as if it was left, where the terminal was closed.
    fn unless_gone(self) -> Result<(), Self> {
        if self.is_terminal_gone() {
            Ok(())
        } else {
            Err(self)
        }
    }
}

/// Tells whether an error says that the terminal was closed.
///
/// A closed terminal is read and written with EIO, and cannot be opened again.
pub(crate) fn is_terminal_gone(error: &std::io::Error) -> bool {
    let errno = rustix::io::Errno::from_io_error(error);
    let closed = [
        rustix::io::Errno::IO,
        rustix::io::Errno::NXIO,
        rustix::io::Errno::NOTTY,
        rustix::io::Errno::PIPE,
    ];
    errno.is_some_and(|errno| closed.contains(&errno))
}

/// Runs the console in this terminal until the operator leaves it, or the process is told to end.
/// The terminal is restored on every way out; what is held stays held.
///
/// # Errors
/// When the terminal fails or the runtime stops.
pub async fn run(desk: Desk, options: Options) -> Result<(), ConsoleError> {
    driver::drive(desk, options).await
}

/// Runs the console line by line, for screen readers: nothing is painted, every line is read once.
///
/// # Errors
/// When the terminal fails or the runtime stops.
pub async fn run_linear(
    desk: Desk,
    clock: Arc<dyn Clock>,
    alarms: Option<Alarms>,
) -> Result<(), ConsoleError> {
    linear::drive(desk, clock, alarms).await
}
