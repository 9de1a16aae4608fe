//! Scenarios next to Atlas files, for the console.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::play_file;
use crate::base::text::one_line;
use crate::cli::atlases::files_in;
use crate::console::{FailedScenarioStep, ScenarioReport};
use crate::runtime::extension::Registry;

/// Name of the folder with scenarios, next to the Atlas files.
const FOLDER: &str = "tests";

/// Plays every scenario in the folder `tests` next to these files. A scenario that cannot be played
/// counts as failed.
pub(in crate::cli) fn trials(files: &[PathBuf], own: &Registry) -> Vec<ScenarioReport> {
    let folders: BTreeSet<PathBuf> = files
        .iter()
        .filter_map(|file| Some(file.parent()?.join(FOLDER)))
        .collect();
    folders
        .iter()
        .flat_map(|folder| in_folder(folder, own))
        .collect()
}

fn in_folder(folder: &Path, own: &Registry) -> Vec<ScenarioReport> {
    let failed = |file: &Path, what: String| ScenarioReport {
        file: file.to_owned(),
        steps: 0,
        failed: vec![FailedScenarioStep {
            line: None,
            mismatch: one_line(&what),
        }],
    };
    let files = match files_in(folder) {
        Ok(files) => files,
        Err(failure) => return vec![failed(folder, failure.to_string())],
    };
    let played = files.into_iter().map(|file| match play_file(&file, own) {
        Ok((steps, failed)) => ScenarioReport {
            file,
            steps,
            failed,
        },
        Err(failure) => failed(&file, failure.to_string()),
    });
    played.collect()
}
