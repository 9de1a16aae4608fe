//! Actions of the Atlas screen. A separate dialog loads files.

use ratatui::Frame;
use ratatui::layout::Rect;

use super::{AtlasScreen, FocusDepth, StewardKey, view};
use crate::base::clock::Timestamp;
use crate::console::atlas_study::{PageLine, StudyResult};
use crate::console::dialog::atlas::AtlasDialog;
use crate::console::dialog::atlas::load::{LoadDialog, LoadDirection};
use crate::console::dialog::atlas::page::PageDialog;
use crate::console::dialog::explanation::ExplainDialog;
use crate::console::dialog::what_if::WhatIfDialog;
use crate::console::keymap::KeyAction;
use crate::console::request::ConsoleRequest;
use crate::console::screen::{Screen, ScreenContext, Visibility};
use crate::console::text_cells::asker_text;
use crate::console::theme::{Appearance, Meaning};
use crate::runtime::WatchSetting;
use crate::runtime::snapshot::{ConsoleAccess, RuntimeSnapshot, ShadowSummary};

/// Note on the page that replays the past: the assumptions needed to read it.
const PAST_NOTE: &str = "Recorded actions, newest first. Each is evaluated under the loaded Atlas and under the \
    files, for a session past its start gates, with all limits unused.";

impl Screen for AtlasScreen {
    fn draw(
        &self,
        snapshot: &RuntimeSnapshot,
        frame: &mut Frame,
        area: Rect,
        appearance: Appearance,
        _now: Timestamp,
    ) {
        view::draw(self, snapshot, frame, area, appearance);
    }

    fn handle_action(&mut self, action: KeyAction, now: Timestamp, context: &mut ScreenContext) {
        match action {
            KeyAction::Explain => self.explain_selected(context),
            KeyAction::WhatIf => self.open_what_if("", context),
            KeyAction::Steward(key) => self.run_command(key, now, context),
            other => context.send(self.act(other, context.snapshot, now)),
        }
    }

    fn is_enabled(&self, action: KeyAction, snapshot: &RuntimeSnapshot) -> bool {
        self.can(action, snapshot)
    }

    fn leads_back(&self) -> bool {
        self.focus_depth == FocusDepth::Chosen
    }

    fn tab_note(&self, snapshot: &RuntimeSnapshot) -> Option<String> {
        let problems = self.problem_count(snapshot);
        (problems > 0).then(|| format!("!{problems}"))
    }

    fn on_start(&mut self, context: &mut ScreenContext) {
        self.schedule_check(context.snapshot);
    }

    /// Two watch requests may overtake each other, so the request is repeated until the snapshot agrees with it.
    fn on_snapshot(&mut self, before: Option<&RuntimeSnapshot>, context: &mut ScreenContext) {
        self.sync(context.snapshot);
        let wanted = match context.visibility {
            Visibility::Shown => WatchSetting::On,
            Visibility::Hidden => WatchSetting::Off,
        };
        if before.is_some() && context.snapshot.watched.watch != wanted {
            context.send([ConsoleRequest::Watch(wanted)]);
        }
    }

    /// Evaluations are watched only while the screen is shown.
    fn on_enter(&mut self, now: Timestamp, context: &mut ScreenContext) {
        self.sync(context.snapshot);
        context.send([ConsoleRequest::Watch(WatchSetting::On)]);
        context.send(self.files.request_check(context.snapshot, now));
    }

    fn on_leave(&mut self, context: &mut ScreenContext) {
        context.send([ConsoleRequest::Watch(WatchSetting::Off)]);
    }

    fn on_drawn(&mut self, area: Rect) {
        self.area = area;
    }

    /// Requests a check of the files if it is due.
    fn on_tick(&mut self, now: Timestamp, context: &mut ScreenContext) {
        context.send(self.check_if_due(context.snapshot, now));
    }

    fn next_change_at(&self, now: Timestamp, _visibility: Visibility) -> Option<Timestamp> {
        self.next_check_at().map(|at| at.max(now))
    }
}

impl AtlasScreen {
    fn run_command(&mut self, key: StewardKey, now: Timestamp, context: &mut ScreenContext) {
        match key {
            StewardKey::Load => self.open_load_dialog(LoadDirection::Forward, now, context),
            StewardKey::Undo => self.open_load_dialog(LoadDirection::Back, now, context),
            StewardKey::Edit => match self.editable(context.snapshot) {
                Ok((file, line)) => context.send([ConsoleRequest::EditFile(file, line)]),
                Err(reason) => context.show_notice(Meaning::Hint, reason),
            },
            StewardKey::Differ => {
                self.open_study(key, "Changes in the files", "- loaded, + file", context);
            }
            StewardKey::Test => {
                let note = "Results of `cra atlas test` for the scenarios in the folder `tests`.";
                self.open_study(key, "Tests", note, context);
            }
            StewardKey::Rehearse => {
                self.open_study(key, "Replay with the new files", PAST_NOTE, context);
            }
            StewardKey::Shadow => self.start_or_show_shadow(context),
            StewardKey::Unshadow if context.snapshot.watched.shadow.is_some() => {
                context.show_notice(Meaning::Hint, "shadow mode ended");
                context.send([ConsoleRequest::Shadow(None)]);
            }
            StewardKey::Unshadow => {
                context.show_notice(Meaning::Hint, "shadow mode is off: S starts it");
            }
        }
    }

    /// Explains the selected evaluation, or opens the form for the selected action.
    fn explain_selected(&self, context: &mut ScreenContext) {
        if let Some(action) = self.selected_action(context.snapshot) {
            self.open_what_if(action, context);
        } else if let Some(seen) = self.selected_evaluation(context.snapshot) {
            let title = format!("{} {}", seen.at.time_of_day(), seen.account.subject);
            let note = format!("{}, session {}, at that time", seen.agent, seen.session);
            context.open(ExplainDialog::of(seen.account.clone(), &title, &note));
        }
    }

    /// Opens the form that evaluates a hypothetical request.
    fn open_what_if(&self, action: &str, context: &mut ScreenContext) {
        let number = context.next_dialog_number();
        let sessions = &context.snapshot.sessions;
        let mut dialog = WhatIfDialog::new(number, sessions, self.session.as_ref(), action);
        let request = dialog.ask();
        context.open(dialog);
        context.send(request);
    }

    /// Asks whether to load the files, or to go back to the Atlases before.
    fn open_load_dialog(
        &self,
        direction: LoadDirection,
        now: Timestamp,
        context: &mut ScreenContext,
    ) {
        if context.snapshot.access == ConsoleAccess::ReadOnly {
            context.show_notice(Meaning::Hint, "read-only console: cannot load Atlases");
            return;
        }
        if let Some(trouble) = &context.trouble {
            let text = format!("cannot load: {}", trouble.short());
            context.show_notice(Meaning::Hint, text);
            return;
        }
        let proposed = match direction {
            LoadDirection::Forward => self.propose_load(context.snapshot),
            LoadDirection::Back => self.propose_undo(context.snapshot),
        };
        match proposed {
            Ok(proposal) => {
                let shown = (direction, proposal.lines);
                let strength = (proposal.strength, proposal.code.as_str());
                let dialog = LoadDialog::new(proposal.load, shown, strength, now);
                context.open(AtlasDialog::Load(dialog));
            }
            Err(reason) => context.show_notice(Meaning::Hint, reason),
        }
    }

    /// Starts shadow evaluation with the files; if it runs already, shows the differences so far.
    fn start_or_show_shadow(&self, context: &mut ScreenContext) {
        let Some(shadow) = context.snapshot.watched.shadow.clone() else {
            match self.propose_load(context.snapshot) {
                Ok(proposal) => {
                    context.show_notice(Meaning::Hint, "SHADOW: S list, Z end");
                    context.send([ConsoleRequest::Shadow(Some(proposal.load))]);
                }
                Err(reason) => context.show_notice(Meaning::Hint, reason),
            }
            return;
        };
        let since = shadow.since.time_of_day();
        let note = format!(
            "Since {since}: {} evaluated, {} with a different result. The files decided nothing. Press Esc, \
             then L to load them or Z to stop.",
            shadow.evaluated, shadow.different
        );
        let number = context.next_dialog_number();
        let mut dialog = PageDialog::new(number, "Shadow results", &note);
        let ticket = dialog.ticket();
        dialog.on_studied(ticket, &Ok(shadow_differences(&shadow)));
        context.open(AtlasDialog::Page(dialog));
    }

    /// Requests a study and opens the page that will show its result.
    fn open_study(&self, key: StewardKey, title: &str, note: &str, context: &mut ScreenContext) {
        let study = match self.build_study(key, context.snapshot) {
            Ok(study) => study,
            Err(reason) => {
                context.show_notice(Meaning::Hint, reason);
                return;
            }
        };
        let dialog = PageDialog::new(context.next_dialog_number(), title, note);
        let ticket = dialog.ticket();
        context.open(AtlasDialog::Page(dialog));
        context.send([ConsoleRequest::Study(ticket, study)]);
    }
}

/// Lists the differences that shadow Atlases would have made, line by line.
fn shadow_differences(shadow: &ShadowSummary) -> StudyResult {
    let mut lines = Vec::new();
    for difference in &shadow.newest {
        let asker = asker_text(&difference.agent, &difference.session);
        let head = format!(
            "{} {} {}",
            difference.at.time_of_day(),
            difference.subject,
            asker
        );
        lines.push(PageLine::new(Meaning::Strong, head));
        lines.push(PageLine::new(
            Meaning::Text,
            format!("  loaded    {}", difference.live),
        ));
        lines.push(PageLine::new(
            Meaning::Waiting,
            format!("  files     {}", difference.shadow),
        ));
    }
    let more = shadow.different.saturating_sub(shadow.newest.len() as u64);
    if more > 0 {
        lines.push(PageLine::new(Meaning::Dim, format!("{more} older")));
    }
    if lines.is_empty() {
        lines.push(PageLine::new(Meaning::Passed, "No differences so far."));
    }
    StudyResult {
        lines,
        summary: None,
    }
}
