//! Terminal console: the screens, dialogs and keys that operators use.
//!
//! `App` is a pure state machine: terminal events, snapshots and messages go in, requests come out,
//! and it paints itself from its own state. The driver is the only part that waits, sends and writes.
//! This module reaches the runtime through [`OperatorHandle`], the operator handle, and plain data. It knows
//! neither the store nor the gateway servers that agents connect to.
//!
//! Contract: a decision leaves this module only after the operator pressed Enter on a focused, enabled
//! button of the dialog that shows exactly that request.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::watch;

use crate::atlas::ManifestTransform;
use crate::base::clock::Clock;
use crate::runtime::OperatorHandle;

mod app;
mod atlas_study;
#[doc(hidden)]
pub mod bench_console;
mod chrome;
mod dialog;
mod driver;
mod explanation_lines;
mod json_line;
mod keymap;
mod line_edit;
mod linear;
mod names;
mod request;
mod screen;
mod terminal;
#[cfg(test)]
mod tests;
mod text_cells;
mod theme;
mod thread_text;

pub use keymap::markdown as key_table;
#[doc(hidden)]
pub use terminal::ToastMethod;
pub use theme::{Appearance, Background, ColourMode, Glyphs, Theme};

/// Settings of a console run.
#[derive(Clone)]
pub struct ConsoleOptions {
    /// Appearance: colours, glyphs and background.
    pub look: Appearance,
    /// Colour theme: for a dark or a light background.
    pub theme: Theme,
    /// Method for desktop notifications when a request arrives.
    pub toasts: ToastMethod,
    /// Captures the mouse from the start.
    pub mouse: bool,
    /// Source of the current time.
    pub clock: Arc<dyn Clock>,
    /// Runner for the test scenarios next to the Atlas files, if there is one.
    pub scenario_runner: Option<ScenarioRunner>,
    /// Source of the list of Atlas files, if the list can change.
    pub atlas_files: Option<AtlasFileSource>,
    /// Changes to apply to manifests before they are validated.
    pub configure: ManifestTransform,
    /// Source of alarms, if there is one.
    pub alarms: Option<AlarmReceiver>,
    /// Text shown when the console opens, until a key is pressed.
    pub greeting: Option<String>,
}

/// Source of alarms. Each value is the full list of current problems, as text.
#[derive(Clone, Debug)]
pub struct AlarmReceiver(pub watch::Receiver<Arc<[String]>>);

impl AlarmReceiver {
    /// Waits until the list of problems changes. Without a source of alarms it waits for ever.
    async fn next(alarms: &mut Option<Self>) -> Arc<[String]> {
        if let Some(Self(receiver)) = alarms
            && receiver.changed().await.is_ok()
        {
            return Arc::clone(&receiver.borrow_and_update());
        }
        std::future::pending().await
    }
}

/// Returns the alarms in `now` that are not in `before`.
fn added_alarms<'a>(before: &[String], now: &'a [String]) -> Vec<&'a String> {
    now.iter().filter(|alarm| !before.contains(alarm)).collect()
}

/// Runs the test scenarios stored next to Atlas files. The call reads files and blocks until it is
/// done.
#[derive(Clone)]
pub struct ScenarioRunner(pub Arc<RunScenariosFn>);

/// Function that runs the scenarios next to the given files.
pub type RunScenariosFn = dyn Fn(&[PathBuf]) -> Vec<ScenarioReport> + Send + Sync;

/// Returns the files that Atlases are loaded from, in order, at the time of the call; or why the list
/// cannot be read.
#[derive(Clone)]
pub struct AtlasFileSource(pub Arc<ListAtlasFilesFn>);

/// Function that lists the Atlas files.
pub type ListAtlasFilesFn = dyn Fn() -> Result<Vec<PathBuf>, String> + Send + Sync;

impl std::fmt::Debug for AtlasFileSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AtlasFileSource").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for ScenarioRunner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScenarioRunner").finish_non_exhaustive()
    }
}

/// Result of one scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioReport {
    /// The scenario's file.
    pub file: PathBuf,
    /// Number of steps in the scenario.
    pub steps: usize,
    /// Steps that did not go as expected.
    pub failed: Vec<FailedScenarioStep>,
}

/// A scenario step that did not go as expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedScenarioStep {
    /// Line of the step in the scenario file.
    pub line: Option<usize>,
    /// The expected result and the actual one.
    pub mismatch: String,
}

impl std::fmt::Debug for ConsoleOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConsoleOptions")
            .field("look", &self.look)
            .finish_non_exhaustive()
    }
}

/// Reason for an end of the console that the operator did not ask for.
#[derive(Debug, thiserror::Error)]
pub enum ConsoleError {
    /// The terminal cannot be read, written or set up.
    #[error("the terminal failed: {0}")]
    Terminal(#[from] std::io::Error),
    /// The runtime stopped.
    #[error("the runtime stopped")]
    Stopped,
}

impl ConsoleError {
    /// Returns true if the terminal was closed. Then the operator has left, which is not a failure.
    fn is_terminal_closed(&self) -> bool {
        matches!(self, Self::Terminal(error) if is_terminal_closed(error))
    }

    /// Returns `Ok` if the terminal was closed, as if the operator had quit; otherwise the error.
    fn ok_if_terminal_closed(self) -> Result<(), Self> {
        if self.is_terminal_closed() {
            Ok(())
        } else {
            Err(self)
        }
    }
}

/// Returns true if the error means that the terminal was closed.
///
/// Reads and writes on a closed terminal fail with EIO, and it cannot be opened again.
pub(crate) fn is_terminal_closed(error: &std::io::Error) -> bool {
    let errno = rustix::io::Errno::from_io_error(error);
    let closed = [
        rustix::io::Errno::IO,
        rustix::io::Errno::NXIO,
        rustix::io::Errno::NOTTY,
        rustix::io::Errno::PIPE,
    ];
    errno.is_some_and(|errno| closed.contains(&errno))
}

/// Runs the console in this terminal until the operator quits or the process receives a signal to end.
/// Every exit restores the terminal; held requests stay held.
///
/// # Errors
/// Returns an error if the terminal fails or the runtime stops.
pub async fn run(
    operator_handle: OperatorHandle,
    options: ConsoleOptions,
) -> Result<(), ConsoleError> {
    driver::drive(operator_handle, options).await
}

/// Runs the console line by line, for screen readers. Nothing is painted; each line is printed once.
///
/// # Errors
/// Returns an error if the terminal fails or the runtime stops.
pub async fn run_linear(
    operator_handle: OperatorHandle,
    clock: Arc<dyn Clock>,
    alarms: Option<AlarmReceiver>,
) -> Result<(), ConsoleError> {
    linear::run_line_console(operator_handle, clock, alarms).await
}
