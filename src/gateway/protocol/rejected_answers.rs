//! Reports of answers that the console did not give.
//!
//! A hook or an MCP proxy that rejects an answer cannot report it over the socket: another process listens
//! there. So it writes a small file in a folder next to the store. The console reads that folder, raises an
//! alarm, records the report in the log, and moves the file to the recorded reports. Those stay until an
//! operator removes them.
//!
//! Contract: a report is only a claim of its writer, and any process of this user can write one. It causes
//! an alarm and a record, and nothing else. The number and size of files are limited.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::base::atomic_file::{self, FileAccess};
use crate::base::clock::{Clock, SystemClock, Timestamp};
use crate::base::json;
use crate::base::text::one_line;

/// Name of the folder, in the folder of the store.
pub const FOLDER_NAME: &str = "rejected-answers";

/// Name of its subfolder with recorded reports.
const RECORDED: &str = "recorded";

/// Most reports in each of the two folders. The first report already raises the alarm.
const MAX_REPORTS: usize = 64;

/// Largest report in bytes that is read. A regular report has about 300 bytes.
const MAX_BYTES: u64 = 8 * 1024;

/// Longest text of a report that is shown and recorded.
const MAX_CHARS: usize = 300;

/// Report of an answer that the console did not give.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RejectedAnswer {
    /// Program that rejected the answer, such as `cra hook claude-code`.
    pub by: String,
    /// Session that sent the request, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Socket that the answer came from.
    pub socket: PathBuf,
    /// Reason why it was rejected.
    pub reason: String,
    /// Time of the rejection, by the writer's clock.
    pub at: Timestamp,
}

impl RejectedAnswer {
    /// Builds a report with the current time.
    #[must_use]
    pub fn new(by: &str, session: Option<String>, socket: &Path, reason: String) -> Self {
        Self {
            by: by.to_owned(),
            session,
            socket: socket.to_owned(),
            reason,
            at: SystemClock.now(),
        }
    }

    /// Writes the report next to the store in `folder`.
    ///
    /// # Errors
    /// Fails when it cannot be written.
    pub fn write_report(&self, folder: &Path) -> io::Result<()> {
        let folder = folder.join(FOLDER_NAME);
        make_private(&folder)?;
        if files(&folder).len() >= MAX_REPORTS {
            return Ok(());
        }
        let name = format!("{}.json", Uuid::now_v7());
        atomic_file::create(
            &folder.join(name),
            FileAccess::Owner,
            serde_json::to_string(self)?.as_bytes(),
        )
    }

    /// Returns the report with texts that are safe to show: any process may have written them.
    fn sanitized(self) -> Self {
        Self {
            by: sanitize(&self.by),
            session: self.session.as_deref().map(sanitize),
            socket: PathBuf::from(sanitize(&self.socket.to_string_lossy())),
            reason: sanitize(&self.reason),
            at: self.at,
        }
    }
}

fn sanitize(text: &str) -> String {
    let text: String = text.chars().take(MAX_CHARS).collect();
    one_line(&text)
}

/// A report and its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredReport {
    file: PathBuf,
    /// The report.
    pub report: RejectedAnswer,
}

/// Reports next to the store in `folder`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RejectedAnswerReports {
    /// Reports that no console has recorded, the oldest first.
    pub new: Vec<StoredReport>,
    /// Recorded reports, the oldest first.
    pub recorded: Vec<StoredReport>,
}

impl RejectedAnswerReports {
    /// Reads all reports. An unreadable folder counts as empty.
    #[must_use]
    pub fn read(folder: &Path) -> Self {
        let folder = folder.join(FOLDER_NAME);
        Self {
            new: read_all(&folder),
            recorded: read_all(&folder.join(RECORDED)),
        }
    }

    /// Returns all reports, the recorded ones first.
    pub fn all(&self) -> impl Iterator<Item = &RejectedAnswer> {
        let all = self.recorded.iter().chain(&self.new);
        all.map(|found| &found.report)
    }

    /// Describes all reports in one line; `None` if there are none.
    #[must_use]
    pub fn summary(&self) -> Option<String> {
        summary(self.all())
    }
}

/// Describes reports in one line; `None` if there are none.
pub fn summary<'r>(reports: impl Iterator<Item = &'r RejectedAnswer>) -> Option<String> {
    let reports: Vec<_> = reports.collect();
    let last = reports.iter().max_by_key(|report| report.at)?;
    let (by, socket, reason) = (&last.by, last.socket.display(), &last.reason);
    let times = match reports.len() {
        1 => "an answer".to_owned(),
        count => format!("{count} answers"),
    };
    Some(format!(
        "ANOTHER PROCESS gave {times} at {socket}, last to `{by}` at {}: {reason}",
        last.at.time_of_day()
    ))
}

/// Moves a report to the recorded ones. Removes the oldest of those when there are too many: the log has
/// them.
///
/// # Errors
/// Fails when it cannot be moved.
pub fn mark_recorded(found: &StoredReport) -> io::Result<()> {
    let (Some(folder), Some(name)) = (found.file.parent(), found.file.file_name()) else {
        return Ok(());
    };
    let recorded = folder.join(RECORDED);
    make_private(&recorded)?;
    fs::rename(&found.file, recorded.join(name))?;
    let files = files(&recorded);
    let more = files.len().saturating_sub(MAX_REPORTS);
    files.iter().take(more).try_for_each(fs::remove_file)
}

fn make_private(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Lists the reports of a folder, the oldest first: their names begin with the time.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_report = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "json");
    let is_hidden = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy());
        name.is_some_and(|name| name.starts_with('.'))
    };
    let paths = entries.map(|entry| entry.path());
    let mut files: Vec<_> = paths
        .filter(|path| is_report(path) && !is_hidden(path))
        .collect();
    files.sort();
    files
}

fn read_all(folder: &Path) -> Vec<StoredReport> {
    let files = files(folder).into_iter().take(MAX_REPORTS);
    files
        .map(|file| {
            let report = read_one(&file).unwrap_or_else(|error| unreadable(&file, &error));
            StoredReport { file, report }
        })
        .collect()
}

fn read_one(file: &Path) -> io::Result<RejectedAnswer> {
    // A report is a regular file, not a link or a pipe.
    if !fs::symlink_metadata(file)?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut text = String::new();
    File::open(file)?
        .take(MAX_BYTES)
        .read_to_string(&mut text)?;
    let read = json::read::<RejectedAnswer>(text.as_bytes());
    Ok(read.map_err(io::Error::other)?.sanitized())
}

/// Returns a substitute for an unreadable report: it raises an alarm, too.
fn unreadable(file: &Path, error: &io::Error) -> RejectedAnswer {
    RejectedAnswer {
        by: "an unknown program".to_owned(),
        session: None,
        socket: PathBuf::from("an unknown socket"),
        reason: sanitize(&format!(
            "the report `{}` cannot be read: {error}",
            file.display()
        )),
        at: Timestamp::from_micros(0),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn report(reason: &str) -> RejectedAnswer {
        let socket = Path::new("/run/cra/console.sock");
        RejectedAnswer::new(
            "cra hook codex",
            Some("s-1".to_owned()),
            socket,
            reason.to_owned(),
        )
    }

    #[test]
    fn a_report_is_private_reads_back_and_stays_after_it_is_recorded() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(RejectedAnswerReports::read(folder.path()).summary(), None);
        let left = report("the answer has no proof");
        left.write_report(folder.path()).unwrap();
        let reports = RejectedAnswerReports::read(folder.path());
        assert_eq!(reports.new.len(), 1);
        assert_eq!(reports.new[0].report, left);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&reports.new[0].file), 0o600);
        assert_eq!(mode(&folder.path().join(FOLDER_NAME)), 0o700);
        mark_recorded(&reports.new[0]).unwrap();
        let reports = RejectedAnswerReports::read(folder.path());
        assert_eq!((reports.new.len(), reports.recorded.len()), (0, 1));
        let summary = reports.summary().unwrap();
        assert!(summary.contains("ANOTHER PROCESS gave an answer at /run/cra/console.sock"));
        assert!(summary.contains("the answer has no proof"), "{summary}");
    }

    #[test]
    fn the_number_of_reports_is_limited_and_the_newest_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        for _ in 0..MAX_REPORTS + 5 {
            report("x").write_report(folder.path()).unwrap();
        }
        let reports = RejectedAnswerReports::read(folder.path());
        assert_eq!(reports.new.len(), MAX_REPORTS);
        reports
            .new
            .iter()
            .for_each(|found| mark_recorded(found).unwrap());
        report("the last").write_report(folder.path()).unwrap();
        mark_recorded(&RejectedAnswerReports::read(folder.path()).new[0]).unwrap();
        let recorded = RejectedAnswerReports::read(folder.path()).recorded;
        assert_eq!(recorded.len(), MAX_REPORTS);
        assert_eq!(recorded.last().unwrap().report.reason, "the last");
    }

    #[test]
    fn an_unreadable_report_raises_an_alarm_and_report_texts_are_shown_escaped() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join(FOLDER_NAME);
        make_private(&place).unwrap();
        fs::write(place.join("a.json"), "no report").unwrap();
        symlink("/dev/zero", place.join("b.json")).unwrap();
        report("\u{1b}[2Jgone\nand more")
            .write_report(folder.path())
            .unwrap();
        let reports = RejectedAnswerReports::read(folder.path());
        let reasons: Vec<_> = reports.all().map(|report| report.reason.clone()).collect();
        assert_eq!(reasons.len(), 3);
        assert_eq!(
            reasons
                .iter()
                .filter(|reason| reason.contains("cannot be read"))
                .count(),
            2
        );
        assert!(
            reasons
                .iter()
                .all(|reason| !reason.contains(['\u{1b}', '\n'])),
            "{reasons:?}"
        );
    }
}
