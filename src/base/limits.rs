//! Every limit, in one place, each with its reason.

use std::time::Duration;

/// Longest identifier in an envelope. A UUID has 36 characters; names that people choose rarely pass 60.
pub const MAX_ID_LEN: usize = 128;

/// Largest Atlas file. The largest real ones are some 100 KiB; a policy nobody can read is no policy.
pub const MAX_ATLAS_BYTES: usize = 4 * 1024 * 1024;

/// Deepest nesting of an Atlas: schemas inside parameters are the deepest part, at about 20.
pub const MAX_ATLAS_DEPTH: usize = 64;

/// Most nodes (scalars, lists, maps) of an Atlas.
pub const MAX_ATLAS_NODES: usize = 500_000;

/// Most problems reported for one file: beyond that the first ones are the news.
pub const MAX_DIAGNOSTICS: usize = 100;

/// Largest compiled form of one regular expression of an Atlas.
pub const MAX_REGEX_BYTES: usize = 1024 * 1024;

/// Largest compiled form of regular expressions of an Atlas that are tried together; what is larger is
/// tried in parts.
pub const MAX_REGEX_SET_BYTES: usize = 16 * MAX_REGEX_BYTES;

/// Most bytes of keywords that are compiled for speed alone, at about 250 bytes of memory for each;
/// more are compiled to a smaller form that is two to three times slower.
pub const MAX_DENSE_KEYWORD_BYTES: usize = 64 * 1024;

/// Most patterns under `action_pre` of a configuration: each is compared with every other one.
pub const MAX_CONFIG_ACTIONS: usize = 500;

/// Most rules of an Atlas by which secrets are left out of records, and most patterns in one of them:
/// every value of every request is compared with each.
pub const MAX_REDACT_RULES: usize = 64;

/// Longest path of a parameter that is compared with those rules; what lies deeper is left out of the
/// record as a whole. Real parameters are named in a few dozen characters.
pub const MAX_REDACT_PATH: usize = 256;

/// Most places of one text that are left out one by one; a text with more is left out as a whole, or a
/// pattern that matches everywhere would make records many times longer than requests.
pub const MAX_REDACT_PLACES: usize = 64;

/// Most secrets of one request that are looked for in texts of others, and most bytes of them in all.
/// Where there are more, those texts are left out as a whole.
pub const MAX_SECRETS: usize = 1024;

/// See [`MAX_SECRETS`].
pub const MAX_SECRET_BYTES: usize = 64 * 1024;

/// Most paths that a record lists of what was left out by one rule; the others are counted.
pub const MAX_REDACTED_PATHS: usize = 32;

/// Longest time that a steward may want events to be kept, in days; a hundred years are for ever.
pub const MAX_RETENTION_DAYS: u32 = 36_525;

/// How long a gate waits for an answer when its checkpoint says nothing.
pub const DEFAULT_GATE_TIMEOUT: Duration = Duration::from_mins(5);

/// Longest a gate may wait: a permission asked for last month is not an answer to today's question.
pub const MAX_GATE_TIMEOUT: Duration = Duration::from_hours(7 * 24);

/// How long a permit waits for the identical retry of an agent that had left.
pub const PERMIT_LIFETIME: Duration = Duration::from_mins(5);

/// Most of an input that is kept for the operator who decides about it. More than anybody reads at a gate, and little
/// enough for a thousand held inputs.
pub const MAX_HELD_TEXT_BYTES: usize = 256 * 1024;

/// Largest parameters of one request, as canonical JSON.
pub const MAX_PARAMS_BYTES: usize = 10 * 1024 * 1024;

/// Deepest nesting of one request's parameters. JSON readers give up at 128, and a record or a kept
/// request puts its parameters a few levels deeper: what goes in must come out again.
pub const MAX_PARAMS_DEPTH: usize = 64;

/// Longest action name.
pub const MAX_ACTION_LEN: usize = 256;

/// Longest text that an operator can type as an answer or as a reason.
pub const MAX_ANSWER_CHARS: usize = 20_000;

/// Most violations of a schema that are listed for one answer: who has mended these sees the next ones.
pub const MAX_SCHEMA_FAULTS: usize = 5;

/// Most requests one session may have waiting at once; more is a runaway agent.
pub const MAX_HELD_PER_SESSION: usize = 64;

/// Most askers that wait for one held request; the earliest makes room. Only the last to ask is
/// released anyway: the others are most likely earlier tries of the same one.
pub const MAX_ASKERS_PER_REQUEST: usize = 64;

/// Most runs of one session that are remembered until they are completed; the oldest makes room.
/// Agents that never say what came of a run would otherwise make their session grow without end.
pub const MAX_RUNNING_PER_SESSION: usize = 256;

/// Most errors of one session that it can still say to have recovered from; the oldest makes room.
pub const MAX_ERRORS_PER_SESSION: usize = 256;

/// Most names in one list of an agent's report about how it is wrapped.
pub const MAX_REPORTED_NAMES: usize = 256;

/// Longest name that an agent gives itself, or its version.
pub const MAX_NAME_LEN: usize = 256;

/// Longest text of an agent's own (what a session is for, what came of a run): enough for a page of
/// words, too little to fill a disk with.
pub const MAX_TEXT_BYTES: usize = 64 * 1024;

/// Contexts that one request can name. An Atlas has seldom as many.
pub const MAX_HINTS: usize = 64;

/// Most requests held at once in all: beyond that new ones are denied, never forgotten.
pub const MAX_HELD: usize = 100_000;

/// Most bytes of what held requests ask for, all together: they are kept in memory, and one may be large.
pub const MAX_HELD_BYTES: usize = 256 * 1024 * 1024;

/// Most entries that a gate keeps from one session until it is passed. Atlases have fewer contexts; a session
/// that calls for more behind its gate is a runaway agent.
pub const MAX_WITHHELD: usize = 256;

/// Most bytes of extensions' texts among them: they are persisted with the session.
pub const MAX_WITHHELD_BYTES: usize = 256 * 1024;

/// Most bytes of requests that wait for a gate before their session, all together: they are kept in memory.
pub const MAX_PARKED_BYTES: usize = 256 * 1024 * 1024;

/// Most entries of one of the engine's caches.
pub const MAX_CACHED: usize = 1024;

/// How long an answer to "what may I do" can be relied on.
pub const RESOLUTION_LIFETIME: Duration = Duration::from_mins(5);

/// Most answers of that kind that one session can rely on at once; the oldest makes room.
pub const MAX_RESOLUTIONS: usize = 16;

/// How long an extension has to answer, where nothing else is said.
pub const EXTENSION_TIMEOUT: Duration = Duration::from_secs(2);

/// Longest that an operator may let an extension take: agents and people wait for it.
pub const MAX_EXTENSION_TIMEOUT: Duration = Duration::from_mins(1);

/// Work that a module may do for one answer where nothing else is said: some tens of milliseconds.
pub const WASM_FUEL: u64 = 10_000_000;

/// Memory that a module may have where nothing else is said.
pub const WASM_MEMORY_BYTES: u64 = 16 * 1024 * 1024;

/// Largest module.
pub const MAX_WASM_BYTES: u64 = 16 * 1024 * 1024;

/// Most questions to extensions that are under way at once; others wait their turn.
pub const MAX_CALLS_OUT: usize = 32;

/// Longest text that an extension answers with.
pub const MAX_EXTENSION_BYTES: usize = 256 * 1024;

/// Decisions shown as recent.
pub const RECENT_DECISIONS: usize = 200;

/// Evaluations that are kept for those who watch. Older ones go.
pub const EVALUATIONS_KEPT: usize = 200;

/// Checkpoints, and as many policies, that are kept of one evaluation; the rest is only counted.
pub const EVIDENCE_KEPT: usize = 64;

/// Longest text that is kept of what one of them wanted or found.
pub const EVIDENCE_CHARS: usize = 300;

/// How often the files of Atlases are looked at while somebody watches them.
pub const FILE_LOOK: Duration = Duration::from_secs(3);

/// Commands that may wait for the runtime. A full queue makes the sender wait.
pub const COMMAND_QUEUE: usize = 1024;

/// Messages that the runtime handles before it hands their changes to the store in one batch. More would make the first
/// of them wait for the last; fewer would cost each its own batch when many agents ask at once.
pub const MESSAGE_BURST: usize = 128;

/// Events that may wait for event hooks. When it is full, hooks miss events; the record does not.
pub const HOOK_QUEUE: usize = 1024;

/// Events that agents may be told of before they are on disk, where Atlases say `acknowledge: early`: what a
/// busy console writes in a few commits. The record of a recovery names this number.
pub const MAX_EARLY_EVENTS: u64 = 256;

/// Batches that may wait for the store's writer, and most of them in one commit. A commit writes every page that it
/// touches once, so a thousand agents are cheaper together than in four commits. A full queue makes the runtime wait.
pub const WRITE_QUEUE: usize = 1024;

/// Keys that arrive this soon after a dialog opened were meant for something else.
pub const ARMING: Duration = Duration::from_millis(700);

/// Time within which passes are counted for whoever is about to pass one more.
pub const PACE_WINDOW: Duration = Duration::from_mins(10);

/// Fewest characters of the reason why a denial is overruled.
pub const MIN_OVERRIDE_REASON: usize = 20;

/// Largest text that is read back from an editor: every character of the longest answer at its widest.
pub const MAX_EDITED_BYTES: u64 = 4 * 20_000;

/// Smallest terminal in which a decision can be taken.
pub const MIN_TERMINAL: (u16, u16) = (60, 18);

/// Time between two comparisons of the wall clock with the steady clock while something waits for a moment.
pub const CLOCK_CHECK: Duration = Duration::from_secs(1);

/// Time for which the operator is shown that the clock was set, or that connections were turned away.
pub const PASSING_ALARM_TIME: Duration = Duration::from_mins(10);

/// Events after which the log is sealed, at the latest.
pub const SEAL_EVENTS: u64 = 256;

/// Time after which the log is sealed while there is something unsealed.
pub const SEAL_TIME: Duration = Duration::from_secs(1);

/// Most events that may lie behind the last signed head: what a busy console has under way, many times
/// over. More were not left behind by a crash.
pub const MAX_UNSEALED: u64 = 64 * SEAL_EVENTS;

/// Most entries of the log that may lie there: each of them should have been signed.
pub const MAX_UNSEALED_ENTRIES: u64 = 128;

/// Most overrides that are acknowledged at once. Each is an entry of the log, and of those only so many may
/// lie behind the last signed head.
pub const MAX_ACKNOWLEDGED: usize = 32;

/// Longest time between the first and the last event of one session behind the last signed head.
pub const MAX_UNSEALED_TIME: Duration = Duration::from_mins(1);

/// Longest line of an export: the largest parameters in a record, twice, and some room.
pub const MAX_LINE_BYTES: u64 = 64 * 1024 * 1024;

/// How long the end of a console waits for the head of the log to be kept elsewhere.
pub const HEAD_FILE_TIME: Duration = Duration::from_secs(5);

/// Most bytes that are handed to the terminal's clipboard. As base64 that is just below the 100,000
/// characters at which common terminals stop listening.
pub const MAX_COPY_BYTES: usize = 72 * 1024;

/// Longest name of a memento, a thread or a message that others gave.
pub const MAX_MEMENTO_NAME: usize = 256;

/// Largest memento or turn. A message is the largest part; a prompt with a whole file in it has some 100 KiB.
pub const MAX_MEMENTO_BYTES: usize = 4 * 1024 * 1024;

/// Most signals of a turn, as the contract of mementos has it.
pub const MAX_SIGNALS: usize = 8;

/// Most points of affect in a memento, as its contract has it.
pub const MAX_AFFECT_POINTS: usize = 5;

/// How long a point of affect counts.
pub const AFFECT_WINDOW: Duration = Duration::from_mins(30);

/// Most items in each list of a proposed summary.
pub const MAX_SHAPE_ITEMS: usize = 6;

/// Mementos of a thread that are kept beside the newest, to be named by later turns.
pub const MAX_MEMENTOS: usize = 8;

/// Proposals of a thread that are kept while its summary is frozen: the newest is what people look at.
pub const MAX_HELD_BACK: usize = 8;

/// Sessions of a thread that are known to have read an operator's edit. Another one has to show that it has.
pub const MAX_EDIT_READERS: usize = 16;

/// Turns of a thread that are kept for its screen; TRACE has all of them.
pub const MAX_TURNS: usize = 64;

/// Largest snapshot file. Long conversations come to some 100 KiB.
pub const MAX_SNAPSHOT_BYTES: usize = 8 * 1024 * 1024;

/// Most entries of each list of a snapshot file: nobody begins with more.
pub const MAX_SNAPSHOT_ITEMS: usize = 200;

/// Decisions of operators that a snapshot file tells, the newest: whoever reads it takes
/// [`MAX_SNAPSHOT_ITEMS`] of all decisions, and the conversation has some of its own.
pub const MAX_ACCOUNT_DECISIONS: usize = 100;

/// Most threads that are kept. When there are as many, a new one needs the room of an abandoned thread
/// ([`ENDED_THREAD_TIME`], [`IDLE_THREAD_TIME`]) or of its owner's own; otherwise it is refused.
pub const MAX_THREADS: usize = 500;

/// Most threads of one owner: a session has one of its own, and a bot that serves several people has some more.
pub const MAX_SESSION_THREADS: usize = 50;

/// Most threads of all sessions that one process began, ended ones included. Everything that comes by HTTP is one
/// process here. A fifth of [`MAX_THREADS`]: one process leaves room for others.
pub const MAX_THREADS_PER_PEER: usize = 100;

/// A thread whose session has ended may make room after this time: agents continue yesterday's conversation.
pub const ENDED_THREAD_TIME: Duration = Duration::from_hours(24);

/// A thread without a turn for this time may make room although its session is open: agents that crash never end
/// theirs.
pub const IDLE_THREAD_TIME: Duration = Duration::from_hours(30 * 24);

/// Sessions that are over and whose names stay in memory. The record has all of them; these bridge the time
/// until their last records are on disk, which is a few hundred batches.
pub const MAX_ENDED_SESSIONS: usize = 4096;

/// Sessions of one process at the socket that are open at once. A service that speaks for more agents than
/// that has several processes, or ends what it no longer needs.
pub const MAX_SESSIONS_PER_PEER: usize = 4096;

/// Sessions that are open at once in all, at some 5 KiB of memory each. The longest idle make room.
pub const MAX_SESSIONS: usize = 50_000;

/// Idle sessions that are ended together when there is no room for a new one: looking for them takes longer
/// than ending them.
pub const SESSIONS_ENDED_TOGETHER: usize = 500;

/// Reports (errors, outputs, turns, feedback) of one process in a second; what comes faster waits. People and
/// models produce a few; a decision table that is played through takes some hundreds.
pub const REPORTS_PER_SECOND: u64 = 1000;

/// Large messages of one process that are read at a time, so that others find room too.
pub const MAX_LARGE_MESSAGES_PER_PEER: usize = 4;

/// Largest message at a door. A request of 10 MB can be looked at; nobody reads a larger one.
pub const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// From this size on a message needs room that all connections share.
pub const LARGE_MESSAGE: usize = 64 * 1024;

/// Messages of more than [`LARGE_MESSAGE`] that are read at a time; others wait, or many connections
/// together would fill the memory.
pub const MAX_LARGE_MESSAGES: usize = 8;

/// How long a large message may have room without a byte coming. A message that stays behind [`LARGE_MESSAGE_RATE`]
/// for this long is cut off, or a few unfinished ones would keep everybody else's out.
pub const LARGE_MESSAGE_GRACE: Duration = Duration::from_secs(1);

/// Bytes in a second at which a large message has to come once it has room. Local processes are far faster.
pub const LARGE_MESSAGE_RATE: usize = 1024 * 1024;

/// How long a message may take from its first byte to its last, and an answer to be taken.
pub const MESSAGE_TIME: Duration = Duration::from_secs(30);

/// How long a request by HTTP may take to say what it is, and a connection may be kept open for the next one.
pub const HEADER_TIME: Duration = Duration::from_secs(10);

/// How long a door waits when a connection could not be taken and none is open that could make room.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Connections at a time. Never more than half of the files that may be open.
pub const MAX_CONNECTIONS: usize = 4096;

/// Files that may be open at once, if the system allows so many.
pub const OPEN_FILES: u64 = 16_384;

/// Connections by HTTP at a time, and never more than a quarter of the files that may be open: every call, hook and stream that is answered at once, and some to spare.
pub const MAX_HTTP_CONNECTIONS: usize = 1536;

/// Calls of one connection that wait for an answer; further ones are not read until one has it.
pub const MAX_CALLS_AT_ONCE: usize = 64;

/// Differences between what is in force and what is in its shadow that are kept.
pub const DIFFERENCES_KEPT: usize = 200;

/// Askers whose requests of the last minute are counted.
pub const MAX_ASKERS: usize = 10_000;

/// Calls of one connection in a second; what comes faster waits.
pub const CALLS_PER_SECOND: u64 = 2000;

/// Notices for one address that are kept until they are delivered, those among them that nobody took
/// included. A steward who does not answer for so long has the record to read.
pub const MAX_NOTICES_PER_ADDRESS: usize = 1000;

/// Notices that are on their way at a time, each to another address.
pub const MAX_NOTICES_UNDER_WAY: usize = 32;

/// How long an address may take for a notice, all together.
pub const NOTICE_TIME: Duration = Duration::from_secs(10);

/// Pauses before a notice is tried again; the last is repeated.
pub const NOTICE_PAUSES: [Duration; 5] = [
    Duration::from_secs(5),
    Duration::from_secs(30),
    Duration::from_mins(2),
    Duration::from_mins(10),
    Duration::from_hours(1),
];

/// How long a notice is tried.
pub const NOTICE_PATIENCE: Duration = Duration::from_hours(72);

/// How long the end of a console waits for notices that are on their way.
pub const NOTICE_END_TIME: Duration = Duration::from_secs(2);

/// Time without a word from an agent after which its session is ended as timed out: longer than a night and a day's work
/// elsewhere, so an agent that is taken up again the next morning goes on.
pub const ABANDONED_TIME: Duration = Duration::from_hours(48);

/// The same for a session with actions that run: some take days.
pub const ABANDONED_RUN_TIME: Duration = Duration::from_hours(24 * 14);

/// Time between two looks for abandoned sessions.
pub const ABANDONED_CHECK: Duration = Duration::from_mins(10);

/// Times that an agent may go on with a conversation whose session has ended. A session has to look for its
/// predecessor among as many names.
pub const MAX_RESUMPTIONS: u32 = 100;

/// Runs of a rate limit whose exact times a session leaves to its successor. Earlier ones count as the oldest of them.
pub const MAX_RUNS_LEFT: usize = 100;
