//! Keys of the Atlas screen.

use ratatui::crossterm::event::KeyCode;

use crate::console::keymap::{
    DOWN, ENTER, FIRST, KeyCombination, KeyScope, LAST, NEXT, PAGE_DOWN, PAGE_UP, PREVIOUS, UP,
    WHY, bindings,
};
use crate::console::screen::trace::TraceKey;
use crate::console::screen::{ScreenDefinition, ScreenId};

/// Name, number key and key bindings of the screen.
pub(crate) const DEFINITION: ScreenDefinition = ScreenDefinition {
    title: "Atlas",
    number: '4',
    label: "atlas",
    help: "Atlas: rules, evaluations and problems",
    related_scopes: &[KeyScope::WhatIf, KeyScope::Load, KeyScope::Explain],
    bindings: bindings! {
        KeyScope::Screen(ScreenId::Atlas) => {
            ENTER => Open, Shown, "open", "open the selected part, or fold it";
            NEXT => Next, Shown, "pane", "next: Atlas, session, evaluations, problems";
            PREVIOUS => Previous, Hidden, "previous pane", "previous pane";
            WHY => Explain, Shown, "why", "explain the evaluation, or try the action";
            &[KeyCombination::plain(KeyCode::Char('i'))] => WhatIf, Shown, "what if",
                "what if: try a hypothetical action or input";
            &[KeyCombination::plain(KeyCode::Char(']'))] => NextProblem, Shown, "problem", "next problem of an Atlas, with its line";
            &[KeyCombination::plain(KeyCode::Char('['))] => PreviousProblem, Hidden, "previous problem", "previous problem";
            &[KeyCombination::plain(KeyCode::Char('L'))] => Steward(StewardKey::Load), Shown, "load",
                "load the files (asks first)";
            &[KeyCombination::plain(KeyCode::Char('e'))] => Steward(StewardKey::Edit), Shown, "editor", "edit the file here in $VISUAL or $EDITOR";
            &[KeyCombination::plain(KeyCode::Char('='))] => Steward(StewardKey::Differ), Shown, "diff", "compare the files with the loaded Atlas";
            &[KeyCombination::plain(KeyCode::Char('T'))] => Steward(StewardKey::Test), Shown, "tests", "run the scenarios in the folder `tests`";
            &[KeyCombination::plain(KeyCode::Char('R'))] => Steward(StewardKey::Rehearse), Shown, "past",
                "replay recorded actions with the new files";
            &[KeyCombination::plain(KeyCode::Char('S'))] => Steward(StewardKey::Shadow), Hidden, "shadow",
                "shadow mode: try the new files without effect";
            &[KeyCombination::plain(KeyCode::Char('Z'))] => Steward(StewardKey::Unshadow), Hidden, "end shadow", "end shadow mode";
            &[KeyCombination::plain(KeyCode::Char('U'))] => Steward(StewardKey::Undo), Hidden, "undo load", "go back to the Atlas loaded before (asks first)";
            &[KeyCombination::plain(KeyCode::Char('>'))] => NextSession, Hidden, "session", "next session";
            &[KeyCombination::plain(KeyCode::Char('<'))] => PreviousSession, Hidden, "previous session", "previous session";
            &[KeyCombination::plain(KeyCode::Char('h')), KeyCombination::plain(KeyCode::Left)] => Browse(TraceKey::Fold), Hidden, "fold", "collapse the row, or go to its parent";
            &[KeyCombination::plain(KeyCode::Char('l')), KeyCombination::plain(KeyCode::Right)] => Browse(TraceKey::Unfold), Hidden, "unfold", "expand the row";
            &[KeyCombination::plain(KeyCode::Char('z'))] => Browse(TraceKey::FoldLevel), Hidden, "fold all", "collapse or expand all parts";
            &[KeyCombination::plain(KeyCode::Char('y'))] => Browse(TraceKey::Copy), Hidden, "copy", "copy the selected part";
            &[KeyCombination::plain(KeyCode::Char('r'))] => Reload, Hidden, "check files", "check the files now (done every few seconds)";
            UP => Up, Hidden, "up", "one row up";
            DOWN => Down, Hidden, "down", "one row down";
            FIRST => First, Hidden, "first", "first row; among evaluations follow the newest";
            LAST => Last, Hidden, "last", "last row";
            PAGE_UP => PageUp, Hidden, "page up", "ten rows up";
            PAGE_DOWN => PageDown, Hidden, "page down", "ten rows down";
        }
    },
};

/// Steward command that other lists do not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StewardKey {
    /// Loads the files after confirmation.
    Load,
    /// Restores the Atlases that were loaded before, after confirmation.
    Undo,
    /// Opens the file in an editor.
    Edit,
    /// Runs the tests that are stored next to the files.
    Test,
    /// Evaluates past requests with the files.
    Rehearse,
    /// Starts evaluating the files in shadow of the loaded Atlases, or shows where their results would
    /// differ.
    Shadow,
    /// Stops the shadow evaluation.
    Unshadow,
    /// Shows the differences between the files and the loaded Atlases.
    Differ,
}
