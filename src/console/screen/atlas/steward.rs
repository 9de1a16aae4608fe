//! Steward commands for the Atlas files: load, undo, edit, test and compare.

use std::path::PathBuf;
use std::sync::Arc;

use super::{AtlasPane, AtlasScreen, FileState, StudyTotals};
use crate::atlas::comparison::{AtlasChange, ChangeKind, Comparison, atlas_changes};
use crate::atlas::{Atlas, origin::PartKind};
use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::base::text::one_line;
use crate::console::atlas_study::{PageLine, Study, StudySummary};
use crate::console::dialog::atlas::load::{GateStrength, LoadDirection};
use crate::console::screen::atlas::StewardKey;
use crate::console::text_cells::counted;
use crate::console::theme::Meaning;
use crate::engine::reload::hash_of_atlases;
use crate::runtime::AtlasLoad;
use crate::runtime::snapshot::{ConsoleAccess, RuntimeSnapshot};

/// Characters of a hash shown for comparison by eye.
const SHORT_HASH: usize = 12;

/// Message when there is nothing to load or to compare.
const NOTHING_TO_LOAD: &str = "files are unchanged";

/// Message when there is no file to edit.
const NO_FILE: &str = "this Atlas is built into cra and has no file";

/// Content of the dialog that asks before it loads other Atlases.
pub(crate) struct LoadProposal {
    pub(crate) load: AtlasLoad,
    /// Changes that loading would make.
    pub(crate) lines: Vec<PageLine>,
    pub(crate) strength: GateStrength,
    /// New hash that the dialog shows.
    pub(crate) code: String,
}

impl AtlasScreen {
    /// Returns true if the steward command has something to act on.
    pub(super) fn is_steward_key_enabled(
        &self,
        key: StewardKey,
        snapshot: &RuntimeSnapshot,
    ) -> bool {
        let writes = snapshot.access == ConsoleAccess::Write;
        match key {
            StewardKey::Load => writes && self.atlases_from_files(snapshot).is_ok(),
            StewardKey::Undo => writes && snapshot.load_info.before.is_some(),
            StewardKey::Edit => self.editable(snapshot).is_ok(),
            StewardKey::Test => snapshot
                .loaded
                .iter()
                .any(|atlas| atlas.origin.file.is_some()),
            StewardKey::Rehearse => self.atlases_from_files(snapshot).is_ok(),
            StewardKey::Shadow => {
                snapshot.watched.shadow.is_some() || self.atlases_from_files(snapshot).is_ok()
            }
            StewardKey::Unshadow => snapshot.watched.shadow.is_some(),
            StewardKey::Differ => {
                let mut added = self.files.folder.changed_added_files();
                self.files.changed_files().next().is_some() || added.next().is_some()
            }
        }
    }

    /// Returns the Atlases as the files define them, or the reason why they cannot be loaded.
    fn atlases_from_files(&self, snapshot: &RuntimeSnapshot) -> Result<Arc<[Atlas]>, String> {
        let mut atlases: Vec<Atlas> = snapshot.loaded.to_vec();
        let mut newer = 0;
        let change = self.files.folder.difference(snapshot);
        if let Some(bar) = change.as_ref().and_then(|change| change.bar.clone()) {
            return Err(bar);
        }
        let is_gone = |at: &usize| {
            change
                .as_ref()
                .is_some_and(|change| change.gone.contains(at))
        };
        for (at, state) in &self.files.states {
            if is_gone(at) {
                continue;
            }
            let found = match state {
                FileState::Same | FileState::AsBefore => continue,
                FileState::Unreadable(_) => return Err("a file cannot be read".to_owned()),
                FileState::Newer(newer) => newer,
            };
            let Some(atlas) = &found.atlas else {
                return Err("fix the errors first (])".to_owned());
            };
            if let Some(place) = atlases.get_mut(*at) {
                *place = (**atlas).clone();
                newer += 1;
            }
        }
        if newer == 0 && change.is_none() {
            return Err(NOTHING_TO_LOAD.to_owned());
        }
        let arranged = self.files.folder.merge_atlases(atlases);
        if arranged.is_empty() {
            return Err("at least one Atlas must stay loaded".to_owned());
        }
        Ok(arranged.into())
    }

    /// Returns the reason why the files cannot be loaded, if there is one.
    pub(crate) fn load_blocker(&self, snapshot: &RuntimeSnapshot) -> Option<String> {
        self.atlases_from_files(snapshot).err()
    }

    /// Describes the changes of loading the files, or returns the reason why they cannot be loaded.
    pub(crate) fn propose_load(&self, snapshot: &RuntimeSnapshot) -> Result<LoadProposal, String> {
        self.build_proposal(
            self.atlases_from_files(snapshot)?,
            snapshot,
            LoadDirection::Forward,
        )
    }

    /// Describes the changes of an undo, or returns the reason why there is nothing to restore.
    pub(crate) fn propose_undo(&self, snapshot: &RuntimeSnapshot) -> Result<LoadProposal, String> {
        let before = snapshot.load_info.before.clone();
        let before = before.ok_or("no Atlas reload since cra started")?;
        let mut proposal = self.build_proposal(before, snapshot, LoadDirection::Back)?;
        let words = "The files do not change: a restart loads them again.";
        proposal.lines.push(PageLine::new(Meaning::Text, words));
        Ok(proposal)
    }

    fn build_proposal(
        &self,
        atlases: Arc<[Atlas]>,
        snapshot: &RuntimeSnapshot,
        direction: LoadDirection,
    ) -> Result<LoadProposal, String> {
        let expected_hash = snapshot.load_info.hash.ok_or("no Atlas is loaded")?;
        let changes = atlas_changes(&snapshot.loaded, &atlases);
        let mut lines = Vec::new();
        let mut weaker = Vec::new();
        for change in &changes {
            lines.extend(match change {
                AtlasChange::Changed(before, after) => {
                    let mut loaded = snapshot.loaded.iter();
                    let at = loaded.position(|atlas| atlas.id == before.id);
                    let file = at.and_then(|at| self.files.changed_at(at));
                    changed_heading(
                        (before, after),
                        file.filter(|_| direction == LoadDirection::Forward),
                        snapshot,
                        direction,
                    )
                }
                AtlasChange::Added(atlas) => {
                    added_or_removed_heading("added", atlas, Meaning::Passed)
                }
                AtlasChange::Removed(atlas) => {
                    added_or_removed_heading("removed", atlas, Meaning::Denied)
                }
            });
            let comparison = change.comparison();
            lines.extend(changed_part_lines(&comparison));
            weaker.extend(comparison.weaker);
        }
        let code = if let [AtlasChange::Changed(_, after), ..] = changes.as_slice() {
            after.hash
        } else {
            // One digest covers all Atlases that would be loaded.
            let all = hash_of_atlases(&atlases);
            lines.extend(digest_lines(&atlases, &all));
            all
        };
        if !weaker.is_empty() {
            let head = "WEAKER RULES FOR AGENTS:";
            lines.push(PageLine::new(Meaning::Banner, head));
            let each = weaker.iter().map(|line| format!("! {}", one_line(line)));
            lines.extend(each.map(|text| PageLine::new(Meaning::Error, text)));
            lines.push(PageLine::new(Meaning::Text, ""));
        }
        lines.extend(consequence_lines(snapshot));
        Ok(LoadProposal {
            load: AtlasLoad {
                atlases,
                expected_hash,
                operator: snapshot.operator.clone(),
            },
            lines,
            strength: if weaker.is_empty() {
                GateStrength::Same
            } else {
                GateStrength::Weaker
            },
            code: code.to_string(),
        })
    }

    /// Returns the computation of a steward command, or the reason why there is nothing to compute.
    pub(crate) fn build_study(
        &self,
        key: StewardKey,
        snapshot: &RuntimeSnapshot,
    ) -> Result<Study, String> {
        let same = || NOTHING_TO_LOAD.to_owned();
        match key {
            StewardKey::Differ => {
                let pairs = self.files.changed_files().filter_map(|(at, newer)| {
                    let live = snapshot.loaded.get(at)?;
                    let texts = (Arc::clone(&live.text), Arc::clone(&newer.text));
                    Some((live.id.clone(), texts.0, texts.1))
                });
                let added = self.files.folder.changed_added_files();
                let added =
                    added.map(|(name, newer)| (name, Arc::from(""), Arc::clone(&newer.text)));
                let pairs: Vec<_> = pairs.chain(added).collect();
                Some(Study::Differ(pairs.clone()))
                    .filter(|_| !pairs.is_empty())
                    .ok_or_else(same)
            }
            StewardKey::Rehearse => {
                let atlases = self.atlases_from_files(snapshot)?;
                let expected_hash = snapshot.load_info.hash.ok_or_else(same)?;
                Ok(Study::Rehearse(AtlasLoad {
                    atlases,
                    expected_hash,
                    operator: String::new(),
                }))
            }
            StewardKey::Test => {
                let files = snapshot.loaded.iter();
                let files: Vec<_> = files
                    .filter_map(|atlas| atlas.origin.file.clone())
                    .collect();
                if files.is_empty() {
                    return Err("the Atlas is built into cra and has no file".to_owned());
                }
                Ok(Study::Test(files))
            }
            StewardKey::Load
            | StewardKey::Undo
            | StewardKey::Edit
            | StewardKey::Shadow
            | StewardKey::Unshadow => Err("nothing to evaluate".to_owned()),
        }
    }

    /// Stores the result of a computation.
    pub(crate) fn on_sum(&mut self, sum: StudySummary) {
        self.totals = match sum {
            StudySummary::Tests(hold, of) => StudyTotals {
                tests: Some((hold, of)),
                ..self.totals
            },
            StudySummary::Rehearsal(change, of) => StudyTotals {
                past: Some((change, of)),
                ..self.totals
            },
        };
    }

    /// Returns the file to edit and its first line: the line of the problem or of the part.
    pub(crate) fn editable(&self, snapshot: &RuntimeSnapshot) -> Result<(PathBuf, usize), String> {
        let problems = self.problems(snapshot);
        let problem = problems
            .get(self.problem)
            .filter(|_| self.pane == AtlasPane::Problems);
        if let Some(problem) = problem {
            let file = problem.file().ok_or(NO_FILE)?;
            return Ok((file.to_owned(), problem.line().unwrap_or(1)));
        }
        let atlas = snapshot.loaded.get(self.row.atlas);
        let atlas = atlas.ok_or("no Atlas is loaded")?;
        let file = atlas.origin.file.clone().ok_or(NO_FILE)?;
        let part = || {
            let (part, item) = (self.row.part?, self.row.item?);
            let id = super::tree::part_id(atlas, part, item)?;
            Some(atlas.origin.lines_of(part, id)?.0)
        };
        Ok((file, part().unwrap_or(1)))
    }
}

fn changed_heading(
    (before, after): (&Atlas, &Atlas),
    file: Option<Timestamp>,
    snapshot: &RuntimeSnapshot,
    direction: LoadDirection,
) -> Vec<PageLine> {
    let since = snapshot.load_info.since;
    let since = since.map_or(String::new(), |at| format!("  since {}", at.time_of_day()));
    let changed = file.map_or(String::new(), |at| {
        format!("  written {}", at.time_of_day())
    });
    let id = one_line(&after.id);
    let version = |atlas: &Atlas| one_line(&atlas.version);
    let same = if before.version == after.version {
        "  (same version number)"
    } else {
        ""
    };
    vec![
        PageLine::new(
            Meaning::Strong,
            format!("{id}  {} -> {}{same}", version(before), version(after)),
        ),
        PageLine::new(
            Meaning::Text,
            format!("loaded  sha {}{since}", short_hash(before)),
        ),
        PageLine::new(
            Meaning::Text,
            format!("{:8}sha {}{changed}", direction.name(), short_hash(after)),
        ),
        PageLine::new(Meaning::Text, ""),
    ]
}

/// Heading of an Atlas that is added or removed.
fn added_or_removed_heading(what: &str, atlas: &Atlas, meaning: Meaning) -> Vec<PageLine> {
    let (id, version) = (one_line(&atlas.id), one_line(&atlas.version));
    vec![
        PageLine::new(meaning, format!("{id}  {version} {what}")),
        PageLine::new(Meaning::Text, format!("        sha {}", short_hash(atlas))),
        PageLine::new(Meaning::Text, ""),
    ]
}

/// Lines with the number of Atlases and the digest that covers them all.
fn digest_lines(atlases: &[Atlas], all: &Digest) -> [PageLine; 2] {
    let sha: String = all.to_string().chars().take(SHORT_HASH).collect();
    let count = match atlases.len() {
        1 => "1 Atlas".to_owned(),
        more => format!("{more} Atlases"),
    };
    let words = format!("{count} in total  sha {sha}");
    [words.as_str(), ""].map(|text| PageLine::new(Meaning::Text, text))
}

/// Returns the first characters of an Atlas's hash.
pub(super) fn short_hash(atlas: &Atlas) -> String {
    atlas.hash.to_string().chars().take(SHORT_HASH).collect()
}

/// Lines of the changed parts, one each, below a line with their number.
fn changed_part_lines(comparison: &Comparison) -> Vec<PageLine> {
    let kinds = [
        (PartKind::Checkpoint, "checkpoints"),
        (PartKind::Policy, "policies"),
        (PartKind::Capability, "capabilities"),
        (PartKind::Context, "contexts"),
        (PartKind::Action, "actions"),
    ];
    let mut lines = Vec::new();
    for (part, name) in kinds {
        let [added, removed, changed] =
            [ChangeKind::Added, ChangeKind::Removed, ChangeKind::Changed]
                .map(|how| comparison.count(part, how));
        if added + removed + changed == 0 {
            continue;
        }
        let words = format!("{name}: {added} added, {removed} removed, {changed} changed");
        lines.push(PageLine::new(Meaning::Label, words));
        for change in comparison.parts.iter().filter(|change| change.part == part) {
            let (mark, meaning) = match change.kind {
                ChangeKind::Added => ("+", Meaning::Passed),
                ChangeKind::Removed => ("-", Meaning::Denied),
                ChangeKind::Changed => ("~", Meaning::Warning),
            };
            lines.push(PageLine::new(
                meaning,
                format!("  {mark} {}", one_line(&change.id)),
            ));
        }
    }
    if lines.is_empty() {
        lines.push(PageLine::new(Meaning::Dim, "no part changed"));
    }
    lines.push(PageLine::new(Meaning::Text, ""));
    lines
}

/// Lines that describe the effect of a load on running sessions and held requests.
fn consequence_lines(snapshot: &RuntimeSnapshot) -> Vec<PageLine> {
    let mut lines = Vec::new();
    if !snapshot.held.is_empty() {
        let held = counted(snapshot.held.len(), "held request");
        let words =
            format!("{held} from the old Atlas: only deny works until that Atlas is loaded again.");
        lines.push(PageLine::new(Meaning::Waiting, words));
    }
    if !snapshot.sessions.is_empty() {
        let agents = counted(snapshot.sessions.len(), "active session");
        let words = format!("{agents} must pass the start gates again.");
        lines.push(PageLine::new(Meaning::Text, words));
    }
    lines
}
