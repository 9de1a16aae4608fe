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
        ENTER => Open, Shown, "open", "opens the selected request; nothing is decided by opening it";
        &[KeyCombination::plain(KeyCode::Char('d'))] => Deny, Shown, "deny",
            "opens the selected request at the step that asks for the reason to deny it";
        &[KeyCombination::plain(KeyCode::Char('c'))] => Queue(Claim), Shown, "claim",
            "says that you look after the selected request, or no longer do; decides nothing";
        &[KeyCombination::plain(KeyCode::Char('u'))] => Merge, Shown, "merge",
            "puts the arrivals that wait below the list into their places";
        &[KeyCombination::plain(KeyCode::Char(' '))] => Queue(Mark), Shown, "mark",
            "marks the selected request for a batch; only low and medium ones that ask the same can be";
        &[KeyCombination::plain(KeyCode::Char('B'))] => Queue(Batch), Shown, "batch",
            "opens the marked requests to answer them once; each gets its own decision and its own record";
        &[KeyCombination::plain(KeyCode::Char('f'))] => Queue(Filter), Shown, "filter",
            "narrows the list: words, risk>=high, agent:x, action:x, session:x, checkpoint:x, state:x, each also with - before it";
        &[KeyCombination::plain(KeyCode::Char('t'))] => Queue(InTrace), Shown, "trace", "shows the session of the selected request in the record";
        &[KeyCombination::plain(KeyCode::Char('o'))] => Queue(Sort), Hidden, "sort", "sorts by risk, deadline, age or agent";
        &[KeyCombination::plain(KeyCode::Char('J'))] => Queue(NextDue), Hidden, "next due", "to the request that is due next";
        &[KeyCombination::plain(KeyCode::Char('/'))] => Queue(Search), Hidden, "search", "looks for a row, with the words of a filter";
        &[KeyCombination::plain(KeyCode::Char('n'))] => Queue(NextMatch), Hidden, "next match", "the next row that matches";
        &[KeyCombination::plain(KeyCode::Char('N'))] => Queue(PreviousMatch), Hidden, "previous match", "the row before that matches";
        &[KeyCombination::plain(KeyCode::Char('y'))] => Queue(Copy), Hidden, "copy", "copies the identifier of the selected request";
        &[KeyCombination::plain(KeyCode::Char('Y'))] => Queue(CopyHash), Hidden, "copy hash", "copies its hash";
        WHY => Explain, Shown, "why", "says why it is held: what every checkpoint and policy wanted and found";
        UP => Up, Hidden, "up", "one row up";
        DOWN => Down, Hidden, "down", "one row down";
        FIRST => First, Hidden, "first", "first row";
        LAST => Last, Hidden, "last", "last row";
        PAGE_UP => PageUp, Hidden, "page up", "ten rows up";
        PAGE_DOWN => PageDown, Hidden, "page down", "ten rows down";
    }
    Trace {
        ENTER => Open, Shown, "open", "from a session to its events, from an event to its content, or one fold";
        &[KeyCombination::plain(KeyCode::Char('h')), KeyCombination::plain(KeyCode::Left)] => Browse(Fold), Shown, "fold", "folds what hangs under the row, or goes up to what it hangs under";
        &[KeyCombination::plain(KeyCode::Char('l')), KeyCombination::plain(KeyCode::Right)] => Browse(Unfold), Hidden, "unfold", "unfolds it";
        &[KeyCombination::plain(KeyCode::Char('z'))] => Browse(FoldLevel), Shown, "level", "folds everything to one level, then to the next, then nothing";
        &[KeyCombination::plain(KeyCode::Char('f'))] => Browse(Filter), Shown, "filter",
            "shows only some events: type:NAME risk>=high actor: agent: action: checkpoint: after: before: words, - for not";
        &[KeyCombination::plain(KeyCode::Char('/'))] => Browse(Search), Shown, "search", "looks for a text and hides nothing";
        &[KeyCombination::plain(KeyCode::Char('n'))] => Browse(SearchNext), Hidden, "next hit", "next place where the text is";
        &[KeyCombination::plain(KeyCode::Char('N'))] => Browse(SearchPrevious), Hidden, "hit before", "the place before";
        &[KeyCombination::plain(KeyCode::Char('v'))] => Verify, Shown, "verify", "checks every chain from its first event to its last";
        &[KeyCombination::plain(KeyCode::Char('['))] => Browse(CheckpointBefore), Hidden, "checkpoint before", "the checkpoint before";
        &[KeyCombination::plain(KeyCode::Char(']'))] => Browse(CheckpointAfter), Shown, "checkpoint", "the next checkpoint";
        &[KeyCombination::plain(KeyCode::Char(','))] => Browse(StepBack), Hidden, "step back", "one event back, whatever is folded or filtered";
        &[KeyCombination::plain(KeyCode::Char('.'))] => Browse(StepOn), Shown, "step", "one event on, whatever is folded or filtered";
        &[KeyCombination::plain(KeyCode::Char(' '))] => Browse(Play), Shown, "play", "plays the session from here on, and pauses";
        &[KeyCombination::plain(KeyCode::Char('s'))] => Browse(StopOn), Hidden, "stop on", "where playing stops: at checkpoints and denials, at denials, or nowhere";
        &[KeyCombination::plain(KeyCode::Char('F'))] => Browse(Follow), Hidden, "follow", "stays at the end as events come in";
        &[KeyCombination::plain(KeyCode::Char('m'))] => Browse(Mark), Hidden, "mark", "marks the event with the letter that comes next";
        &[KeyCombination::plain(KeyCode::Char('\''))] => Browse(Jump), Hidden, "jump", "goes to the event with the letter that comes next";
        &[KeyCombination::plain(KeyCode::Char('D'))] => Browse(Compare), Shown, "diff", "holds the session against another one";
        &[KeyCombination::plain(KeyCode::Char('y'))] => Browse(Copy), Shown, "copy", "copies the event, the chosen value, or the session's name";
        &[KeyCombination::plain(KeyCode::Char('E'))] => Browse(Export), Shown, "export", "writes the session to a file: jsonl, csv, html, otlp or golden";
        WHY => Explain, Hidden, "why", "says why the event's request was held, or would be";
        NEXT => Next, Hidden, "next pane", "next pane: events, event";
        PREVIOUS => Previous, Hidden, "previous pane", "previous pane";
        &[KeyCombination::plain(KeyCode::Char('r'))] => Reload, Hidden, "reload", "reads the record again, and reads on where it was stopped";
        UP => Up, Hidden, "up", "one row up";
        DOWN => Down, Hidden, "down", "one row down";
        FIRST => First, Hidden, "first", "first row";
        LAST => Last, Hidden, "last", "last row, and stays there as events come in";
        PAGE_UP => PageUp, Hidden, "page up", "ten rows up";
        PAGE_DOWN => PageDown, Hidden, "page down", "ten rows down";
    }
    Threads {
        ENTER => Open, Shown, "open", "from a thread to its memento; from a turn to its event in the record";
        &[KeyCombination::plain(KeyCode::Char('>')), KeyCombination::plain(KeyCode::Char('l')), KeyCombination::plain(KeyCode::Right)] => Thread(Next), Shown, "thread", "the next thread";
        &[KeyCombination::plain(KeyCode::Char('<')), KeyCombination::plain(KeyCode::Char('h')), KeyCombination::plain(KeyCode::Left)] => Thread(Previous), Hidden, "thread before", "the thread before";
        &[KeyCombination::plain(KeyCode::Char('='))] => Thread(Differ), Shown, "diff", "shows every proposal that was held back against what is kept, and goes back";
        &[KeyCombination::plain(KeyCode::Char('b'))] => Thread(History), Shown, "history", "to the turns of the thread";
        &[KeyCombination::plain(KeyCode::Char('t'))] => Thread(InTrace), Shown, "trace", "shows the session of the thread in the record";
        &[KeyCombination::plain(KeyCode::Char('y'))] => Thread(Copy), Shown, "copy", "copies the memento as JSON";
        &[KeyCombination::plain(KeyCode::Char('e'))] => Thread(Edit), Shown, "edit",
            "opens the summary in $VISUAL, $EDITOR or vi; what comes back is recorded, and the next turn must follow it";
        &[KeyCombination::plain(KeyCode::Char('s'))] => Thread(WriteSnapshot), Shown, "save",
            "writes where the thread's session stands to a snapshot file, and opens that";
        &[KeyCombination::plain(KeyCode::Char('w'))] => Thread(Drift), Shown, "drift", "asks whether to say that the conversation drifts; recorded";
        &[KeyCombination::plain(KeyCode::Char('p'))] => Thread(Legend), Shown, "legend", "says what phases, intensities, decisions and signals mean";
        &[KeyCombination::plain(KeyCode::Char('o'))] => Thread(OpenSnapshot), Hidden, "open snapshot", "opens a snapshot file, to go on from it";
        &[KeyCombination::plain(KeyCode::Char('/'))] => Thread(Search), Hidden, "search",
            "looks for a thread by its name, session, summary, or what is held back";
        &[KeyCombination::plain(KeyCode::Char('n'))] => Thread(NextMatch), Hidden, "next match", "the next thread that matches";
        &[KeyCombination::plain(KeyCode::Char('N'))] => Thread(PreviousMatch), Hidden, "previous match", "the thread before that matches";
        NEXT => Next, Hidden, "next pane", "next pane: threads, memento, history";
        PREVIOUS => Previous, Hidden, "pane before", "the pane before";
        UP => Up, Hidden, "up", "one row up";
        DOWN => Down, Hidden, "down", "one row down";
        FIRST => First, Hidden, "first", "first row";
        LAST => Last, Hidden, "last", "last row";
        PAGE_UP => PageUp, Hidden, "page up", "ten rows up";
        PAGE_DOWN => PageDown, Hidden, "page down", "ten rows down";
    }
    Snapshot {
        &[KeyCombination::plain(KeyCode::Tab), KeyCombination::plain(KeyCode::Right), KeyCombination::plain(KeyCode::Char('l'))] => Next, Shown, "next step", "the next step";
        &[KeyCombination::plain(KeyCode::BackTab), KeyCombination::plain(KeyCode::Left), KeyCombination::plain(KeyCode::Char('h'))] => Previous, Hidden, "step before", "the step before";
        &[KeyCombination::plain(KeyCode::Char('1'))] => Snapshot(Retrieve), Hidden, "retrieve", "what is read, in its order";
        &[KeyCombination::plain(KeyCode::Char('2'))] => Snapshot(Infer), Hidden, "infer", "what follows from it";
        &[KeyCombination::plain(KeyCode::Char('3'))] => Snapshot(Validate), Hidden, "validate", "what is clear, what is missing, and what to ask first";
        &[KeyCombination::plain(KeyCode::Char('4'))] => Snapshot(Engage), Hidden, "engage", "the text to go on with";
        &[KeyCombination::plain(KeyCode::Char('5'))] => Snapshot(Artifacts), Hidden, "artifacts", "what was made and can be loaded";
        ENTER => Open, Shown, "load", "loads the chosen artifact; nothing is loaded by itself";
        &[KeyCombination::plain(KeyCode::Char('y'))] => Snapshot(Copy), Shown, "copy", "copies the text to go on with";
        &[KeyCombination::plain(KeyCode::Char('s'))] => Snapshot(Write), Shown, "write", "writes one of the chosen thread's session, and opens that";
        &[KeyCombination::plain(KeyCode::Char('o'))] => Snapshot(Other), Shown, "other file", "opens another file";
        DOWN => Down, Hidden, "down", "one row down";
        UP => Up, Hidden, "up", "one row up";
        FIRST => First, Hidden, "first", "the beginning";
        LAST => Last, Hidden, "last", "the end";
        PAGE_UP => PageUp, Hidden, "page up", "ten rows up";
        PAGE_DOWN => PageDown, Hidden, "page down", "ten rows down";
        &[KeyCombination::plain(KeyCode::F(1)), KeyCombination::plain(KeyCode::Char('?'))] => Help, Hidden, "help", "this help";
        ESC => Back, Shown, "back", "from an artifact to the list, or out";
    }
    Atlas {
        ENTER => Open, Shown, "open", "goes into what is chosen, or folds it";
        NEXT => Next, Shown, "pane", "next pane: Atlas, session, evaluations, problems";
        PREVIOUS => Previous, Hidden, "pane before", "the pane before";
        WHY => Explain, Shown, "why", "shows an evaluation whole; of an action, what would happen to it";
        &[KeyCombination::plain(KeyCode::Char('i'))] => WhatIf, Shown, "what if",
            "asks what would come of an action or input that is only imagined";
        &[KeyCombination::plain(KeyCode::Char(']'))] => NextProblem, Shown, "problem", "the next problem of an Atlas, with its line";
        &[KeyCombination::plain(KeyCode::Char('['))] => PreviousProblem, Hidden, "problem before", "the problem before";
        &[KeyCombination::plain(KeyCode::Char('L'))] => Steward(Load), Shown, "load",
            "asks whether to load the files; what is held stays under the Atlas it was judged under";
        &[KeyCombination::plain(KeyCode::Char('e'))] => Steward(Edit), Shown, "editor", "opens the file in $VISUAL, $EDITOR or vi, where the problem or the part is";
        &[KeyCombination::plain(KeyCode::Char('='))] => Steward(Differ), Shown, "diff", "shows how the files differ from what is loaded";
        &[KeyCombination::plain(KeyCode::Char('T'))] => Steward(Test), Shown, "tests", "plays the scenarios in the folder `tests` beside the files";
        &[KeyCombination::plain(KeyCode::Char('R'))] => Steward(Rehearse), Shown, "past",
            "judges the last recorded actions by the files, and lists those that would be judged otherwise";
        &[KeyCombination::plain(KeyCode::Char('S'))] => Steward(Shadow), Hidden, "shadow",
            "has the files look on and decide nothing; then lists what they would have done otherwise";
        &[KeyCombination::plain(KeyCode::Char('Z'))] => Steward(Unshadow), Hidden, "end shadow", "stops the files from looking on";
        &[KeyCombination::plain(KeyCode::Char('U'))] => Steward(Undo), Hidden, "undo load", "asks whether to go back to what was loaded before";
        &[KeyCombination::plain(KeyCode::Char('>'))] => NextSession, Hidden, "session", "the next session";
        &[KeyCombination::plain(KeyCode::Char('<'))] => PreviousSession, Hidden, "session before", "the session before";
        &[KeyCombination::plain(KeyCode::Char('h')), KeyCombination::plain(KeyCode::Left)] => Browse(Fold), Hidden, "fold", "folds what hangs under the row, or goes up to what it hangs under";
        &[KeyCombination::plain(KeyCode::Char('l')), KeyCombination::plain(KeyCode::Right)] => Browse(Unfold), Hidden, "unfold", "unfolds it";
        &[KeyCombination::plain(KeyCode::Char('z'))] => Browse(FoldLevel), Hidden, "fold all", "folds every kind of part, or unfolds everything";
        &[KeyCombination::plain(KeyCode::Char('y'))] => Browse(Copy), Hidden, "copy", "copies what is looked at";
        &[KeyCombination::plain(KeyCode::Char('r'))] => Reload, Hidden, "look", "looks at the files now; they are looked at every few seconds anyway";
        UP => Up, Hidden, "up", "one row up";
        DOWN => Down, Hidden, "down", "one row down";
        FIRST => First, Hidden, "first", "first row; among evaluations the newest, and stays there";
        LAST => Last, Hidden, "last", "last row";
        PAGE_UP => PageUp, Hidden, "page up", "ten rows up";
        PAGE_DOWN => PageDown, Hidden, "page down", "ten rows down";
    }
    WhatIf {
        NEXT => Next, Shown, "next", "next field";
        PREVIOUS => Previous, Hidden, "previous field", "previous field";
        &[KeyCombination::plain(KeyCode::PageDown)] => PageDown, Shown, "scroll", "scrolls the answer down";
        &[KeyCombination::plain(KeyCode::PageUp)] => PageUp, Hidden, "scroll up", "scrolls the answer up";
        &[KeyCombination::plain(KeyCode::F(1))] => Help, Hidden, "help", "this help";
        ESC => Back, Shown, "close", "closes the form";
    }
    Load {
        NEXT => Next, Shown, "next", "next button, or what is to be typed";
        PREVIOUS => Previous, Hidden, "previous button", "the one before";
        ENTER => Press, Shown, "press", "presses the focused button";
        &[KeyCombination::plain(KeyCode::PageDown), KeyCombination::plain(KeyCode::Down)] => PageDown, Shown, "scroll", "scrolls what changes down";
        &[KeyCombination::plain(KeyCode::PageUp), KeyCombination::plain(KeyCode::Up)] => PageUp, Hidden, "scroll up", "scrolls it up";
        &[KeyCombination::plain(KeyCode::F(1))] => Help, Hidden, "help", "this help";
        ESC => Back, Shown, "keep", "keeps what is loaded";
    }
    Explain {
        DOWN => Down, Shown, "scroll", "one row down";
        UP => Up, Hidden, "up", "one row up";
        FIRST => First, Hidden, "first", "the beginning";
        LAST => Last, Hidden, "last", "the end";
        PAGE_UP => PageUp, Hidden, "page up", "ten rows up";
        PAGE_DOWN => PageDown, Hidden, "page down", "ten rows down";
        &[KeyCombination::plain(KeyCode::F(1)), KeyCombination::plain(KeyCode::Char('?'))] => Help, Hidden, "help", "this help";
        &[KeyCombination::plain(KeyCode::Esc), KeyCombination::plain(KeyCode::Char('x'))] => Back, Shown, "close", "closes the explanation";
    }
    Line {
        ENTER => Press, Shown, "done", "takes what was typed";
        &[KeyCombination::plain(KeyCode::Up)] => Up, Shown, "earlier", "what was typed before";
        &[KeyCombination::plain(KeyCode::Down)] => Down, Hidden, "later", "what was typed after it";
        ESC => Back, Shown, "close", "closes the line; nothing is changed";
    }
    Global {
        &[KeyCombination::plain(KeyCode::Char('1'))] => ShowQueue, Hidden, "queue", "the queue: requests that wait for an answer";
        &[KeyCombination::plain(KeyCode::Char('2'))] => ShowTrace, Hidden, "trace", "the record: sessions and their events";
        &[KeyCombination::plain(KeyCode::Char(':'))] => Palette, Hidden, "palette", "finds a command by its name; nothing is decided by it";
        &[KeyCombination::plain(KeyCode::F(2))] => Mouse, Hidden, "mouse", "takes the mouse, or gives it back to the terminal; a click selects and never decides";
        &[KeyCombination::plain(KeyCode::Char('3'))] => ShowThreads, Hidden, "threads", "the conversations: where they go, how heated they are, what is held back";
        &[KeyCombination::plain(KeyCode::Char('4'))] => ShowAtlas, Hidden, "atlas", "the Atlases: what is in them, what they did, what is wrong with them";
        &[KeyCombination::plain(KeyCode::Char('?')), KeyCombination::plain(KeyCode::F(1))] => Help, Shown, "help", "this help; type to search it";
        &[KeyCombination::plain(KeyCode::Char('q'))] => Quit, Shown, "quit", "leaves the console; asks first while requests are held";
        ESC => Back, Hidden, "back", "one level back; never leaves the console";
        &[KeyCombination::ctrl('c')] => Cancel, Hidden, "cancel", "one level back; twice within a second leaves the console";
        &[KeyCombination::ctrl('l')] => Redraw, Hidden, "redraw", "paints the screen anew";
        &[KeyCombination::plain(KeyCode::F(3))] => Restore, Hidden, "dialog", "brings back a dialog that was put aside";
        &[KeyCombination::plain(KeyCode::F(8))] => KnowAlarms, Hidden, "ack alarms", "says that you know of the alarms; they stay listed, and ring again when they come anew";
        &[KeyCombination::ctrl('z')] => Suspend, Hidden, "suspend", "back to the shell; `fg` returns";
    }
    Gate {
        NEXT => Next, Shown, "next", "next field or button";
        PREVIOUS => Previous, Hidden, "previous field", "previous field or button";
        ENTER => Press, Shown, "press", "presses the focused button; in a text, begins a new line";
        &[KeyCombination::plain(KeyCode::F(6))] => SwitchPane, Shown, "request", "switches between the request and the answers";
        ESC => Back, Shown, "back", "one level back; what was typed is kept";
        &[KeyCombination::plain(KeyCode::PageDown)] => PageDown, Shown, "scroll", "scrolls the request down, wherever the focus is; in the review, what will be written";
        &[KeyCombination::plain(KeyCode::PageUp)] => PageUp, Hidden, "scroll up", "scrolls it up";
        &[KeyCombination::ctrl('s')] => Review, Shown, "review", "goes on to the review; never decides";
        &[KeyCombination::ctrl('e')] => EditOutside, Shown, "editor",
            "opens the focused text in $VISUAL, $EDITOR or vi; nothing is decided by it, and sensitive answers stay here";
        &[KeyCombination::plain(KeyCode::F(7))] => Explain, Hidden, "why", "says why it is held: what every checkpoint and policy wanted and found";
        &[KeyCombination::plain(KeyCode::F(3))] => Minimise, Shown, "minimise", "puts the dialog aside; F3 brings it back";
        &[KeyCombination::plain(KeyCode::F(1))] => Help, Hidden, "help", "this help";
    }
    Request {
        &[KeyCombination::plain(KeyCode::Char('/'))] => SearchRequest, Shown, "search", "looks for a text in the request; Enter ends typing";
        WHY => Explain, Shown, "why", "says why it is held";
        &[KeyCombination::plain(KeyCode::Char('n'))] => NextMatch, Shown, "next match", "the next place where it is";
        &[KeyCombination::plain(KeyCode::Char('N'))] => PreviousMatch, Hidden, "previous match", "the place before";
        UP => Up, Hidden, "up", "one row up";
        DOWN => Down, Hidden, "down", "one row down";
        FIRST => First, Hidden, "first", "the beginning of the request";
        LAST => Last, Hidden, "last", "the end of what is shown; what was jumped over does not count as seen";
    }
    Text {
        &[KeyCombination::ctrl('u')] => Undo, Hidden, "undo", "takes the last change back";
        &[KeyCombination::ctrl('r')] => Redo, Hidden, "redo", "makes it again";
    }
    Json {
        &[KeyCombination::plain(KeyCode::F(4))] => Skeleton, Shown, "skeleton", "begins an empty answer with what its schema asks for";
    }
    Pick {
        &[KeyCombination::plain(KeyCode::Up)] => Up, Hidden, "up", "one option up; moving chooses nothing";
        &[KeyCombination::plain(KeyCode::Down)] => Down, Hidden, "down", "one option down";
        &[KeyCombination::plain(KeyCode::Enter), KeyCombination::plain(KeyCode::Char(' ')),
            KeyCombination::plain(KeyCode::Char('1')), KeyCombination::plain(KeyCode::Char('2')), KeyCombination::plain(KeyCode::Char('3')),
            KeyCombination::plain(KeyCode::Char('4')), KeyCombination::plain(KeyCode::Char('5')), KeyCombination::plain(KeyCode::Char('6')),
            KeyCombination::plain(KeyCode::Char('7')), KeyCombination::plain(KeyCode::Char('8')), KeyCombination::plain(KeyCode::Char('9'))]
            => Choose, Hidden, "choose",
            "chooses the option under the cursor, or the one of that number; other keys filter, Esc lists all again";
    }
    Choice {
        &[KeyCombination::plain(KeyCode::Left), KeyCombination::plain(KeyCode::Right), KeyCombination::plain(KeyCode::Char(' '))]
            => Choose, Hidden, "choose", "moves the answer between yes and no";
    }
    Prompt {
        ENTER => Press, Shown, "keep", "keeps what was typed";
        ESC => Back, Shown, "as before", "as it was before";
    }
    Palette {
        &[KeyCombination::plain(KeyCode::Up)] => Up, Hidden, "up", "one command up";
        &[KeyCombination::plain(KeyCode::Down), KeyCombination::plain(KeyCode::Tab)] => Down, Shown, "next", "one command down";
        ENTER => Open, Shown, "run", "does what the chosen command says; a decision never";
        ESC => Back, Shown, "close", "closes the palette";
    }
    Help {
        &[KeyCombination::plain(KeyCode::Up)] => Up, Hidden, "up", "one row up";
        &[KeyCombination::plain(KeyCode::Down)] => Down, Shown, "scroll", "one row down";
        &[KeyCombination::plain(KeyCode::PageUp)] => PageUp, Hidden, "page up", "ten rows up";
        &[KeyCombination::plain(KeyCode::PageDown)] => PageDown, Hidden, "page down", "ten rows down";
        ESC => Back, Shown, "close", "closes the help";
    }
    Quit {
        &[KeyCombination::plain(KeyCode::Tab), KeyCombination::plain(KeyCode::BackTab), KeyCombination::plain(KeyCode::Left), KeyCombination::plain(KeyCode::Right)]
            => Next, Shown, "other button", "moves between the buttons";
        ENTER => Press, Shown, "press", "presses the focused button";
        ESC => Back, Shown, "stay", "stays";
    }
};
