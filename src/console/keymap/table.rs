//! The rows of the table.

use ratatui::crossterm::event::KeyCode;

use super::{FooterVisibility, KeyAction, KeyBinding, KeyCombination, KeyScope};

const UP: &[KeyCombination] = &[
    KeyCombination::plain(KeyCode::Up),
    KeyCombination::plain(KeyCode::Char('k')),
];
const DOWN: &[KeyCombination] = &[
    KeyCombination::plain(KeyCode::Down),
    KeyCombination::plain(KeyCode::Char('j')),
];
const FIRST: &[KeyCombination] = &[
    KeyCombination::plain(KeyCode::Home),
    KeyCombination::plain(KeyCode::Char('g')),
];
const LAST: &[KeyCombination] = &[
    KeyCombination::plain(KeyCode::End),
    KeyCombination::plain(KeyCode::Char('G')),
];
const PAGE_UP: &[KeyCombination] = &[
    KeyCombination::plain(KeyCode::PageUp),
    KeyCombination::ctrl('u'),
];
const PAGE_DOWN: &[KeyCombination] = &[
    KeyCombination::plain(KeyCode::PageDown),
    KeyCombination::ctrl('d'),
];
const NEXT: &[KeyCombination] = &[KeyCombination::plain(KeyCode::Tab)];
const PREVIOUS: &[KeyCombination] = &[KeyCombination::plain(KeyCode::BackTab)];
const ENTER: &[KeyCombination] = &[KeyCombination::plain(KeyCode::Enter)];
const WHY: &[KeyCombination] = &[KeyCombination::plain(KeyCode::Char('x'))];
const ESC: &[KeyCombination] = &[KeyCombination::plain(KeyCode::Esc)];

/// Inner types of the action variants, under the variant names, for the `bindings!` macro.
mod inner {
    pub(super) use super::super::QueueKey as Queue;
    pub(super) use super::super::SnapshotKey as Snapshot;
    pub(super) use super::super::StewardKey as Steward;
    pub(super) use super::super::ThreadKey as Thread;
    pub(super) use super::super::TraceKey as Browse;
}

macro_rules! bindings {
    ($($scope:ident { $( $keys:expr => $action:ident $(( $inner:ident ))?, $footer:ident, $label:literal, $help:literal; )* })*) => {
        &[$($( KeyBinding {
            scope: KeyScope::$scope,
            keys: $keys,
            action: KeyAction::$action $(( inner::$action::$inner ))?,
            label: $label,
            help: $help,
            footer: FooterVisibility::$footer,
        }, )*)*]
    };
}

/// All key bindings.
pub(crate) static BINDINGS: &[KeyBinding] = bindings! {
    Queue {
        ENTER => Open, Shown, "open", "open the selected request (decides nothing)";
        &[KeyCombination::plain(KeyCode::Char('d'))] => Deny, Shown, "deny",
            "deny the request (asks for a reason first)";
        &[KeyCombination::plain(KeyCode::Char('c'))] => Queue(Claim), Shown, "claim",
            "claim or release the request (decides nothing)";
        &[KeyCombination::plain(KeyCode::Char('u'))] => Merge, Shown, "new",
            "show new requests in the list";
        &[KeyCombination::plain(KeyCode::Char(' '))] => Queue(Mark), Shown, "mark",
            "mark for a batch (low or medium risk only)";
        &[KeyCombination::plain(KeyCode::Char('B'))] => Queue(Batch), Shown, "batch",
            "answer the marked requests (one record each)";
        &[KeyCombination::plain(KeyCode::Char('f'))] => Queue(Filter), Shown, "filter",
            "filter: words, risk>=high, agent:x, action:x, state:x, -x";
        &[KeyCombination::plain(KeyCode::Char('t'))] => Queue(InTrace), Shown, "trace", "show the session of the request in the record";
        &[KeyCombination::plain(KeyCode::Char('o'))] => Queue(Sort), Hidden, "sort", "sort by risk, deadline, age or agent";
        &[KeyCombination::plain(KeyCode::Char('J'))] => Queue(NextDue), Hidden, "next due", "go to the request that is due next";
        &[KeyCombination::plain(KeyCode::Char('/'))] => Queue(Search), Hidden, "search", "search the rows, with the syntax of the filter";
        &[KeyCombination::plain(KeyCode::Char('n'))] => Queue(NextMatch), Hidden, "next match", "next matching row";
        &[KeyCombination::plain(KeyCode::Char('N'))] => Queue(PreviousMatch), Hidden, "previous match", "previous matching row";
        &[KeyCombination::plain(KeyCode::Char('y'))] => Queue(Copy), Hidden, "copy", "copy the identifier of the request";
        &[KeyCombination::plain(KeyCode::Char('Y'))] => Queue(CopyHash), Hidden, "copy hash", "copy the hash of the request";
        WHY => Explain, Shown, "why", "explain why the request is held, rule by rule";
        UP => Up, Hidden, "up", "one row up";
        DOWN => Down, Hidden, "down", "one row down";
        FIRST => First, Hidden, "first", "first row";
        LAST => Last, Hidden, "last", "last row";
        PAGE_UP => PageUp, Hidden, "page up", "ten rows up";
        PAGE_DOWN => PageDown, Hidden, "page down", "ten rows down";
    }
    Trace {
        ENTER => Open, Shown, "open", "open the session or the event, or fold";
        &[KeyCombination::plain(KeyCode::Char('h')), KeyCombination::plain(KeyCode::Left)] => Browse(Fold), Shown, "fold", "collapse the row, or go to its parent";
        &[KeyCombination::plain(KeyCode::Char('l')), KeyCombination::plain(KeyCode::Right)] => Browse(Unfold), Hidden, "unfold", "expand the row";
        &[KeyCombination::plain(KeyCode::Char('z'))] => Browse(FoldLevel), Shown, "level", "collapse to one level, to the next, then expand all";
        &[KeyCombination::plain(KeyCode::Char('f'))] => Browse(Filter), Shown, "filter",
            "filter: words, type:x, risk>=high, actor:x, after:x, -x";
        &[KeyCombination::plain(KeyCode::Char('/'))] => Browse(Search), Shown, "search", "search for a text; hides nothing";
        &[KeyCombination::plain(KeyCode::Char('n'))] => Browse(SearchNext), Hidden, "next hit", "next match";
        &[KeyCombination::plain(KeyCode::Char('N'))] => Browse(SearchPrevious), Hidden, "previous hit", "previous match";
        &[KeyCombination::plain(KeyCode::Char('v'))] => Verify, Shown, "verify", "verify every chain from its first event to its last";
        &[KeyCombination::plain(KeyCode::Char('['))] => Browse(CheckpointBefore), Hidden, "previous checkpoint", "previous checkpoint";
        &[KeyCombination::plain(KeyCode::Char(']'))] => Browse(CheckpointAfter), Shown, "checkpoint", "next checkpoint";
        &[KeyCombination::plain(KeyCode::Char(','))] => Browse(StepBack), Hidden, "step back", "previous event, ignoring folds and filters";
        &[KeyCombination::plain(KeyCode::Char('.'))] => Browse(StepOn), Shown, "step", "next event, ignoring folds and filters";
        &[KeyCombination::plain(KeyCode::Char(' '))] => Browse(Play), Shown, "play", "replay the session from here, or pause";
        &[KeyCombination::plain(KeyCode::Char('s'))] => Browse(StopOn), Hidden, "stop on", "replay stops at: checkpoints and denials, denials, never";
        &[KeyCombination::plain(KeyCode::Char('F'))] => Browse(Follow), Hidden, "follow", "follow new events at the end";
        &[KeyCombination::plain(KeyCode::Char('m'))] => Browse(Mark), Hidden, "mark", "mark the event with the letter you type next";
        &[KeyCombination::plain(KeyCode::Char('\''))] => Browse(Jump), Hidden, "jump", "go to the event with the mark you type next";
        &[KeyCombination::plain(KeyCode::Char('D'))] => Browse(Compare), Shown, "diff", "compare the session with another one";
        &[KeyCombination::plain(KeyCode::Char('y'))] => Browse(Copy), Shown, "copy", "copy the event, the value or the session's name";
        &[KeyCombination::plain(KeyCode::Char('E'))] => Browse(Export), Shown, "export", "export the session: jsonl, csv, html, otlp or golden";
        WHY => Explain, Hidden, "why", "explain why the event's request was or would be held";
        NEXT => Next, Hidden, "next pane", "next pane: events, event";
        PREVIOUS => Previous, Hidden, "previous pane", "previous pane";
        &[KeyCombination::plain(KeyCode::Char('r'))] => Reload, Hidden, "reload", "reload the record, or continue a stopped read";
        UP => Up, Hidden, "up", "one row up";
        DOWN => Down, Hidden, "down", "one row down";
        FIRST => First, Hidden, "first", "first row";
        LAST => Last, Hidden, "last", "last row, and follow new events";
        PAGE_UP => PageUp, Hidden, "page up", "ten rows up";
        PAGE_DOWN => PageDown, Hidden, "page down", "ten rows down";
    }
    Threads {
        ENTER => Open, Shown, "open", "open the memento, or the event of a turn";
        &[KeyCombination::plain(KeyCode::Char('>')), KeyCombination::plain(KeyCode::Char('l')), KeyCombination::plain(KeyCode::Right)] => Thread(Next), Shown, "thread", "next thread";
        &[KeyCombination::plain(KeyCode::Char('<')), KeyCombination::plain(KeyCode::Char('h')), KeyCombination::plain(KeyCode::Left)] => Thread(Previous), Hidden, "previous thread", "previous thread";
        &[KeyCombination::plain(KeyCode::Char('='))] => Thread(Differ), Shown, "diff", "compare saved proposals with the memento, or return";
        &[KeyCombination::plain(KeyCode::Char('b'))] => Thread(History), Shown, "history", "go to the turns of the thread";
        &[KeyCombination::plain(KeyCode::Char('t'))] => Thread(InTrace), Shown, "trace", "show the session of the thread in the record";
        &[KeyCombination::plain(KeyCode::Char('y'))] => Thread(Copy), Shown, "copy", "copy the memento as JSON";
        &[KeyCombination::plain(KeyCode::Char('e'))] => Thread(Edit), Shown, "edit",
            "edit the summary in $VISUAL or $EDITOR (recorded)";
        &[KeyCombination::plain(KeyCode::Char('s'))] => Thread(WriteSnapshot), Shown, "save",
            "write a snapshot file of the session and open it";
        &[KeyCombination::plain(KeyCode::Char('w'))] => Thread(Drift), Shown, "drift", "flag drift in the thread (asks first, recorded)";
        &[KeyCombination::plain(KeyCode::Char('p'))] => Thread(Legend), Shown, "legend", "explain phases, intensities, decisions and signals";
        &[KeyCombination::plain(KeyCode::Char('o'))] => Thread(OpenSnapshot), Hidden, "open snapshot", "open a snapshot file";
        &[KeyCombination::plain(KeyCode::Char('/'))] => Thread(Search), Hidden, "search",
            "search threads by name, session, summary or proposal";
        &[KeyCombination::plain(KeyCode::Char('n'))] => Thread(NextMatch), Hidden, "next match", "next matching thread";
        &[KeyCombination::plain(KeyCode::Char('N'))] => Thread(PreviousMatch), Hidden, "previous match", "previous matching thread";
        NEXT => Next, Hidden, "next pane", "next pane: threads, memento, history";
        PREVIOUS => Previous, Hidden, "previous pane", "previous pane";
        UP => Up, Hidden, "up", "one row up";
        DOWN => Down, Hidden, "down", "one row down";
        FIRST => First, Hidden, "first", "first row";
        LAST => Last, Hidden, "last", "last row";
        PAGE_UP => PageUp, Hidden, "page up", "ten rows up";
        PAGE_DOWN => PageDown, Hidden, "page down", "ten rows down";
    }
    Snapshot {
        &[KeyCombination::plain(KeyCode::Tab), KeyCombination::plain(KeyCode::Right), KeyCombination::plain(KeyCode::Char('l'))] => Next, Shown, "next step", "next step";
        &[KeyCombination::plain(KeyCode::BackTab), KeyCombination::plain(KeyCode::Left), KeyCombination::plain(KeyCode::Char('h'))] => Previous, Hidden, "previous step", "previous step";
        &[KeyCombination::plain(KeyCode::Char('1'))] => Snapshot(Retrieve), Hidden, "retrieve", "phase 1: the content of the file, in order";
        &[KeyCombination::plain(KeyCode::Char('2'))] => Snapshot(Infer), Hidden, "infer", "phase 2: conclusions from the content";
        &[KeyCombination::plain(KeyCode::Char('3'))] => Snapshot(Validate), Hidden, "validate", "phase 3: clear points, gaps, and questions to ask first";
        &[KeyCombination::plain(KeyCode::Char('4'))] => Snapshot(Engage), Hidden, "engage", "phase 4: the text to continue with";
        &[KeyCombination::plain(KeyCode::Char('5'))] => Snapshot(Artifacts), Hidden, "artifacts", "artifacts that can be loaded";
        ENTER => Open, Shown, "load", "load the selected artifact";
        &[KeyCombination::plain(KeyCode::Char('y'))] => Snapshot(Copy), Shown, "copy", "copy the text to continue with";
        &[KeyCombination::plain(KeyCode::Char('s'))] => Snapshot(Write), Shown, "write", "write a snapshot of the selected thread and open it";
        &[KeyCombination::plain(KeyCode::Char('o'))] => Snapshot(Other), Shown, "other file", "open another file";
        DOWN => Down, Hidden, "down", "one row down";
        UP => Up, Hidden, "up", "one row up";
        FIRST => First, Hidden, "first", "beginning";
        LAST => Last, Hidden, "last", "end";
        PAGE_UP => PageUp, Hidden, "page up", "ten rows up";
        PAGE_DOWN => PageDown, Hidden, "page down", "ten rows down";
        &[KeyCombination::plain(KeyCode::F(1)), KeyCombination::plain(KeyCode::Char('?'))] => Help, Hidden, "help", "this help";
        ESC => Back, Shown, "back", "back to the list, or close";
    }
    Atlas {
        ENTER => Open, Shown, "open", "open the selected part, or fold it";
        NEXT => Next, Shown, "pane", "next: Atlas, session, evaluations, problems";
        PREVIOUS => Previous, Hidden, "previous pane", "previous pane";
        WHY => Explain, Shown, "why", "explain the evaluation, or try the action";
        &[KeyCombination::plain(KeyCode::Char('i'))] => WhatIf, Shown, "what if",
            "what if: try a hypothetical action or input";
        &[KeyCombination::plain(KeyCode::Char(']'))] => NextProblem, Shown, "problem", "next problem of an Atlas, with its line";
        &[KeyCombination::plain(KeyCode::Char('['))] => PreviousProblem, Hidden, "previous problem", "previous problem";
        &[KeyCombination::plain(KeyCode::Char('L'))] => Steward(Load), Shown, "load",
            "load the files (asks first)";
        &[KeyCombination::plain(KeyCode::Char('e'))] => Steward(Edit), Shown, "editor", "edit the file here in $VISUAL or $EDITOR";
        &[KeyCombination::plain(KeyCode::Char('='))] => Steward(Differ), Shown, "diff", "compare the files with the loaded Atlas";
        &[KeyCombination::plain(KeyCode::Char('T'))] => Steward(Test), Shown, "tests", "run the scenarios in the folder `tests`";
        &[KeyCombination::plain(KeyCode::Char('R'))] => Steward(Rehearse), Shown, "past",
            "replay recorded actions with the new files";
        &[KeyCombination::plain(KeyCode::Char('S'))] => Steward(Shadow), Hidden, "shadow",
            "shadow mode: try the new files without effect";
        &[KeyCombination::plain(KeyCode::Char('Z'))] => Steward(Unshadow), Hidden, "end shadow", "end shadow mode";
        &[KeyCombination::plain(KeyCode::Char('U'))] => Steward(Undo), Hidden, "undo load", "go back to the Atlas loaded before (asks first)";
        &[KeyCombination::plain(KeyCode::Char('>'))] => NextSession, Hidden, "session", "next session";
        &[KeyCombination::plain(KeyCode::Char('<'))] => PreviousSession, Hidden, "previous session", "previous session";
        &[KeyCombination::plain(KeyCode::Char('h')), KeyCombination::plain(KeyCode::Left)] => Browse(Fold), Hidden, "fold", "collapse the row, or go to its parent";
        &[KeyCombination::plain(KeyCode::Char('l')), KeyCombination::plain(KeyCode::Right)] => Browse(Unfold), Hidden, "unfold", "expand the row";
        &[KeyCombination::plain(KeyCode::Char('z'))] => Browse(FoldLevel), Hidden, "fold all", "collapse or expand all parts";
        &[KeyCombination::plain(KeyCode::Char('y'))] => Browse(Copy), Hidden, "copy", "copy the selected part";
        &[KeyCombination::plain(KeyCode::Char('r'))] => Reload, Hidden, "check files", "check the files now (done every few seconds)";
        UP => Up, Hidden, "up", "one row up";
        DOWN => Down, Hidden, "down", "one row down";
        FIRST => First, Hidden, "first", "first row; among evaluations follow the newest";
        LAST => Last, Hidden, "last", "last row";
        PAGE_UP => PageUp, Hidden, "page up", "ten rows up";
        PAGE_DOWN => PageDown, Hidden, "page down", "ten rows down";
    }
    WhatIf {
        NEXT => Next, Shown, "next", "next field";
        PREVIOUS => Previous, Hidden, "previous field", "previous field";
        &[KeyCombination::plain(KeyCode::PageDown)] => PageDown, Shown, "scroll", "scroll the answer down";
        &[KeyCombination::plain(KeyCode::PageUp)] => PageUp, Hidden, "scroll up", "scroll the answer up";
        &[KeyCombination::plain(KeyCode::F(1))] => Help, Hidden, "help", "this help";
        ESC => Back, Shown, "close", "close the form";
    }
    Load {
        NEXT => Next, Shown, "next", "next button or text field";
        PREVIOUS => Previous, Hidden, "previous button", "previous button or text field";
        ENTER => Press, Shown, "press", "press the focused button";
        &[KeyCombination::plain(KeyCode::PageDown), KeyCombination::plain(KeyCode::Down)] => PageDown, Shown, "scroll", "scroll the changes down";
        &[KeyCombination::plain(KeyCode::PageUp), KeyCombination::plain(KeyCode::Up)] => PageUp, Hidden, "scroll up", "scroll up";
        &[KeyCombination::plain(KeyCode::F(1))] => Help, Hidden, "help", "this help";
        ESC => Back, Shown, "keep", "keep the loaded Atlas";
    }
    Explain {
        DOWN => Down, Shown, "scroll", "one row down";
        UP => Up, Hidden, "up", "one row up";
        FIRST => First, Hidden, "first", "beginning";
        LAST => Last, Hidden, "last", "end";
        PAGE_UP => PageUp, Hidden, "page up", "ten rows up";
        PAGE_DOWN => PageDown, Hidden, "page down", "ten rows down";
        &[KeyCombination::plain(KeyCode::F(1)), KeyCombination::plain(KeyCode::Char('?'))] => Help, Hidden, "help", "this help";
        &[KeyCombination::plain(KeyCode::Esc), KeyCombination::plain(KeyCode::Char('x'))] => Back, Shown, "close", "close the explanation";
    }
    Line {
        ENTER => Press, Shown, "done", "accept the line";
        &[KeyCombination::plain(KeyCode::Up)] => Up, Shown, "earlier", "previous line of the history";
        &[KeyCombination::plain(KeyCode::Down)] => Down, Hidden, "later", "next line of the history";
        ESC => Back, Shown, "close", "close the line without a change";
    }
    Global {
        &[KeyCombination::plain(KeyCode::Char('1'))] => ShowQueue, Hidden, "queue", "Queue: held requests";
        &[KeyCombination::plain(KeyCode::Char('2'))] => ShowTrace, Hidden, "trace", "Trace: sessions and their events";
        &[KeyCombination::plain(KeyCode::Char('3'))] => ShowThreads, Hidden, "threads", "Threads: summaries, intensity, saved proposals";
        &[KeyCombination::plain(KeyCode::Char('4'))] => ShowAtlas, Hidden, "atlas", "Atlas: rules, evaluations and problems";
        &[KeyCombination::plain(KeyCode::Char(':'))] => Palette, Hidden, "palette", "find a command by name (decides nothing)";
        &[KeyCombination::plain(KeyCode::F(2))] => Mouse, Hidden, "mouse", "mouse on or off (a click never decides)";
        &[KeyCombination::plain(KeyCode::Char('?')), KeyCombination::plain(KeyCode::F(1))] => Help, Shown, "help", "this help; type to search it";
        &[KeyCombination::plain(KeyCode::Char('q'))] => Quit, Shown, "quit", "quit (asks first while requests are held)";
        ESC => Back, Hidden, "back", "go back one level (never quits)";
        &[KeyCombination::ctrl('c')] => Cancel, Hidden, "cancel", "go back one level; twice in a second quits";
        &[KeyCombination::ctrl('l')] => Redraw, Hidden, "redraw", "redraw the screen";
        &[KeyCombination::plain(KeyCode::F(3))] => Restore, Hidden, "dialog", "restore a minimised dialog";
        &[KeyCombination::plain(KeyCode::F(8))] => KnowAlarms, Hidden, "ack alarms", "acknowledge the alarms; new ones ring again";
        &[KeyCombination::ctrl('z')] => Suspend, Hidden, "suspend", "suspend; `fg` in the shell returns";
    }
    Gate {
        NEXT => Next, Shown, "next", "next field or button";
        PREVIOUS => Previous, Hidden, "previous field", "previous field or button";
        ENTER => Press, Shown, "press", "press the focused button; in a text, start a new line";
        &[KeyCombination::plain(KeyCode::F(6))] => SwitchPane, Shown, "request", "switch between request and answers";
        ESC => Back, Shown, "back", "go back; the draft is kept";
        &[KeyCombination::plain(KeyCode::PageDown)] => PageDown, Shown, "scroll", "scroll the request or the review down";
        &[KeyCombination::plain(KeyCode::PageUp)] => PageUp, Hidden, "scroll up", "scroll up";
        &[KeyCombination::ctrl('s')] => Review, Shown, "review", "continue to the review (never decides)";
        &[KeyCombination::ctrl('e')] => EditOutside, Shown, "editor",
            "edit the text in $VISUAL or $EDITOR (not sensitive answers)";
        &[KeyCombination::plain(KeyCode::F(7))] => Explain, Hidden, "why", "explain why the request is held, rule by rule";
        &[KeyCombination::plain(KeyCode::F(3))] => Minimise, Shown, "minimise", "minimise the dialog; F3 restores it";
        &[KeyCombination::plain(KeyCode::F(1))] => Help, Hidden, "help", "this help";
    }
    Request {
        &[KeyCombination::plain(KeyCode::Char('/'))] => SearchRequest, Shown, "search", "search the request; Enter ends typing";
        WHY => Explain, Shown, "why", "explain why the request is held";
        &[KeyCombination::plain(KeyCode::Char('n'))] => NextMatch, Shown, "next match", "next match";
        &[KeyCombination::plain(KeyCode::Char('N'))] => PreviousMatch, Hidden, "previous match", "previous match";
        UP => Up, Hidden, "up", "one row up";
        DOWN => Down, Hidden, "down", "one row down";
        FIRST => First, Hidden, "first", "beginning of the request";
        LAST => Last, Hidden, "last", "go to the end; skipped rows do not count as seen";
    }
    Text {
        &[KeyCombination::ctrl('u')] => Undo, Hidden, "undo", "undo the last change";
        &[KeyCombination::ctrl('r')] => Redo, Hidden, "redo", "redo the change";
    }
    Json {
        &[KeyCombination::plain(KeyCode::F(4))] => Skeleton, Shown, "skeleton", "fill an empty answer with the schema's fields";
    }
    Pick {
        &[KeyCombination::plain(KeyCode::Up)] => Up, Hidden, "up", "previous option (does not choose)";
        &[KeyCombination::plain(KeyCode::Down)] => Down, Hidden, "down", "next option";
        &[KeyCombination::plain(KeyCode::Enter), KeyCombination::plain(KeyCode::Char(' ')),
            KeyCombination::plain(KeyCode::Char('1')), KeyCombination::plain(KeyCode::Char('2')), KeyCombination::plain(KeyCode::Char('3')),
            KeyCombination::plain(KeyCode::Char('4')), KeyCombination::plain(KeyCode::Char('5')), KeyCombination::plain(KeyCode::Char('6')),
            KeyCombination::plain(KeyCode::Char('7')), KeyCombination::plain(KeyCode::Char('8')), KeyCombination::plain(KeyCode::Char('9'))]
            => Choose, Hidden, "choose",
            "choose the option; type to filter, Esc clears the filter";
    }
    Choice {
        &[KeyCombination::plain(KeyCode::Left), KeyCombination::plain(KeyCode::Right), KeyCombination::plain(KeyCode::Char(' '))]
            => Choose, Hidden, "choose", "switch between yes and no";
    }
    Prompt {
        ENTER => Press, Shown, "keep", "keep the typed text";
        ESC => Back, Shown, "restore", "restore the earlier text";
    }
    Palette {
        &[KeyCombination::plain(KeyCode::Up)] => Up, Hidden, "up", "previous command";
        &[KeyCombination::plain(KeyCode::Down), KeyCombination::plain(KeyCode::Tab)] => Down, Shown, "next", "next command";
        ENTER => Open, Shown, "run", "run the selected command (never a decision)";
        ESC => Back, Shown, "close", "close the palette";
    }
    Help {
        &[KeyCombination::plain(KeyCode::Up)] => Up, Hidden, "up", "one row up";
        &[KeyCombination::plain(KeyCode::Down)] => Down, Shown, "scroll", "one row down";
        &[KeyCombination::plain(KeyCode::PageUp)] => PageUp, Hidden, "page up", "ten rows up";
        &[KeyCombination::plain(KeyCode::PageDown)] => PageDown, Hidden, "page down", "ten rows down";
        ESC => Back, Shown, "close", "close the help";
    }
    Quit {
        &[KeyCombination::plain(KeyCode::Tab), KeyCombination::plain(KeyCode::BackTab), KeyCombination::plain(KeyCode::Left), KeyCombination::plain(KeyCode::Right)]
            => Next, Shown, "other button", "move between the buttons";
        ENTER => Press, Shown, "press", "press the focused button";
        ESC => Back, Shown, "cancel", "cancel, and stay in the console";
    }
};
