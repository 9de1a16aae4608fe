//! Every limit, in one place, each with its reason.

use std::time::Duration;

/// Maximum length of an identifier in an envelope. A UUID has 36 characters; names chosen by people rarely exceed
/// 60.
pub const MAX_ID_LEN: usize = 128;

/// Maximum size of an Atlas file. The largest real ones have about 100 KiB; a larger policy would be unreadable.
pub const MAX_ATLAS_BYTES: usize = 4 * 1024 * 1024;

/// Maximum nesting depth of an Atlas. Parameter schemas are the deepest part, at about 20.
pub const MAX_ATLAS_DEPTH: usize = 64;

/// Maximum number of nodes (scalars, lists, maps) in an Atlas.
pub const MAX_ATLAS_NODES: usize = 500_000;

/// Maximum number of problems reported for one file; the first ones matter most.
pub const MAX_DIAGNOSTICS: usize = 100;

/// Maximum compiled size of one regular expression of an Atlas.
pub const MAX_REGEX_BYTES: usize = 1024 * 1024;

/// Maximum compiled size of regular expressions of an Atlas that are tried together; larger sets are split.
pub const MAX_REGEX_SET_BYTES: usize = 16 * MAX_REGEX_BYTES;

/// Maximum total size of keywords that are compiled for speed, at about 250 bytes of memory per byte. Larger sets
/// are compiled to a smaller form that is two to three times slower.
pub const MAX_DENSE_KEYWORD_BYTES: usize = 64 * 1024;

/// Maximum number of patterns under `action_pre` of a configuration; each is compared with every other one.
pub const MAX_CONFIG_ACTIONS: usize = 500;

/// Maximum number of redaction rules of an Atlas, and of patterns in one rule. Every value of every request is
/// compared with each.
pub const MAX_REDACT_RULES: usize = 64;

/// Maximum length of a parameter path that is compared with redaction rules. Values at longer paths are redacted as
/// a whole. Real parameter names have a few dozen characters.
pub const MAX_REDACT_PATH: usize = 256;

/// Maximum number of separate redactions in one text. A text with more is redacted as a whole; otherwise a pattern
/// that matches everywhere would make records many times longer than requests.
pub const MAX_REDACT_PLACES: usize = 64;

/// Maximum number of secrets of one request that are searched for in other texts, and their maximum total size.
///
/// Beyond these limits, those texts are redacted as a whole.
pub const MAX_SECRETS: usize = 1024;

/// Maximum total size of the secrets; see [`MAX_SECRETS`].
pub const MAX_SECRET_BYTES: usize = 64 * 1024;

/// Maximum number of redacted paths that a record lists per rule; the others are only counted.
pub const MAX_REDACTED_PATHS: usize = 32;

/// Maximum retention of events in days; a hundred years count as unlimited.
pub const MAX_RETENTION_DAYS: u32 = 36_525;

/// Default time that a gate waits for an answer.
pub const DEFAULT_GATE_TIMEOUT: Duration = Duration::from_mins(5);

/// Maximum time that a gate waits. A permission requested last month is not an answer to today's question.
pub const MAX_GATE_TIMEOUT: Duration = Duration::from_hours(7 * 24);

/// Time that a permit waits for the identical retry of a disconnected agent.
pub const PERMIT_LIFETIME: Duration = Duration::from_mins(5);

/// Maximum size of an input that is kept for the operator who decides about it. More than an operator reads at a
/// gate, and small enough for a thousand held inputs.
pub const MAX_HELD_TEXT_BYTES: usize = 256 * 1024;

/// Maximum size of the parameters of one request, as canonical JSON.
pub const MAX_PARAMS_BYTES: usize = 10 * 1024 * 1024;

/// Maximum nesting depth of the parameters of one request. JSON readers stop at 128, and a record or stored request
/// nests its parameters a few levels deeper; stored parameters must remain readable.
pub const MAX_PARAMS_DEPTH: usize = 64;

/// Maximum length of an action name.
pub const MAX_ACTION_LEN: usize = 256;

/// Maximum length of an answer or a reason typed by an operator.
pub const MAX_ANSWER_CHARS: usize = 20_000;

/// Maximum number of schema violations listed for one answer; after fixing these, the respondent sees the next
/// ones.
pub const MAX_SCHEMA_ERRORS: usize = 5;

/// Maximum number of held requests per session; more indicate a runaway agent.
pub const MAX_HELD_PER_SESSION: usize = 64;

/// Maximum number of callers that wait for one held request; the earliest is dropped. Only the last caller is
/// released anyway: the others are most likely earlier tries of the same call.
pub const MAX_CALLERS_PER_REQUEST: usize = 64;

/// Maximum number of unfinished runs remembered per session; the oldest is dropped. Agents that never report the
/// result of a run would otherwise make their session grow without limit.
pub const MAX_RUNNING_PER_SESSION: usize = 256;

/// Maximum number of errors per session that it can still report as recovered; the oldest is dropped.
pub const MAX_ERRORS_PER_SESSION: usize = 256;

/// Maximum number of names in one list of an agent's report about its wrapper.
pub const MAX_REPORTED_NAMES: usize = 256;

/// Maximum length of an agent's name or version.
pub const MAX_NAME_LEN: usize = 256;

/// Maximum size of a free text from an agent (the purpose of a session, the result of a run): enough for a page,
/// too little to fill a disk.
pub const MAX_TEXT_BYTES: usize = 64 * 1024;

/// Maximum number of contexts that one request can name. An Atlas rarely has as many.
pub const MAX_HINTS: usize = 64;

/// Maximum number of held requests in total; beyond it, new ones are denied, never dropped silently.
pub const MAX_HELD: usize = 100_000;

/// Maximum total size of held requests; they are kept in memory, and one may be large.
pub const MAX_HELD_BYTES: usize = 256 * 1024 * 1024;

/// Maximum number of entries withheld from one session until its gate is passed. Atlases have fewer contexts; a
/// session that requests more before its gate is a runaway agent.
pub const MAX_WITHHELD: usize = 256;

/// Maximum total size of extension texts among the withheld entries; they are persisted with the session.
pub const MAX_WITHHELD_BYTES: usize = 256 * 1024;

/// Maximum total size of requests that wait for a session's gate; they are kept in memory.
pub const MAX_PARKED_BYTES: usize = 256 * 1024 * 1024;

/// Maximum number of entries in one of the engine's caches.
pub const MAX_CACHED: usize = 1024;

/// Time for which a resolution (the answer to "what may I do") remains valid.
pub const RESOLUTION_LIFETIME: Duration = Duration::from_mins(5);

/// Maximum number of valid resolutions per session; the oldest is dropped.
pub const MAX_RESOLUTIONS: usize = 16;

/// Default time limit for the answer of an extension.
pub const EXTENSION_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum time limit that an operator may set for an extension; agents and people wait for it.
pub const MAX_EXTENSION_TIMEOUT: Duration = Duration::from_mins(1);

/// Default fuel of a WebAssembly module for one answer: some tens of milliseconds.
pub const DEFAULT_WASM_FUEL: u64 = 10_000_000;

/// Default memory limit of a WebAssembly module.
pub const DEFAULT_WASM_MEMORY_BYTES: u64 = 16 * 1024 * 1024;

/// Maximum size of a WebAssembly module.
pub const MAX_WASM_BYTES: u64 = 16 * 1024 * 1024;

/// Maximum number of concurrent extension calls; further calls wait.
pub const MAX_EXTENSION_CALLS: usize = 32;

/// Maximum size of an extension's answer.
pub const MAX_EXTENSION_BYTES: usize = 256 * 1024;

/// Number of decisions shown as recent.
pub const RECENT_DECISIONS: usize = 200;

/// Number of evaluations kept for observers; older ones are dropped.
pub const EVALUATIONS_KEPT: usize = 200;

/// Number of checkpoints, and of policies, kept per evaluation; the rest is only counted.
pub const EVIDENCE_KEPT: usize = 64;

/// Maximum length of a kept expected or actual value.
pub const EVIDENCE_CHARS: usize = 300;

/// Interval between checks of the Atlas files while an operator watches them.
pub const ATLAS_FILE_CHECK_INTERVAL: Duration = Duration::from_secs(3);

/// Capacity of the runtime's command queue. A full queue makes the sender wait.
pub const COMMAND_QUEUE: usize = 1024;

/// Number of messages that the runtime handles before it passes their changes to the store in one batch. A larger
/// number would make the first message wait for the last; a smaller one would cost more batches when many agents
/// ask at once.
pub const MESSAGE_BURST: usize = 128;

/// Capacity of the event hook queue. When it is full, hooks miss events; the record does not.
pub const HOOK_QUEUE: usize = 1024;

/// Maximum number of events that agents may learn of before they are on disk, where Atlases say `acknowledge:
/// early`. A busy console writes this many in a few commits. The record of a recovery names this number.
pub const MAX_EARLY_EVENTS: u64 = 256;

/// Capacity of the store writer's queue, and maximum number of batches in one commit. A commit writes each touched
/// page once, so one commit for a thousand agents is cheaper than four. A full queue makes the runtime wait.
pub const WRITE_QUEUE: usize = 1024;

/// Time after the opening of a dialog in which keys are ignored, because they were meant for something else.
pub const DIALOG_ARMING_TIME: Duration = Duration::from_millis(700);

/// Time window in which approvals are counted and shown to an operator who is about to approve another one.
pub const PACE_WINDOW: Duration = Duration::from_mins(10);

/// Minimum length of the reason for overriding a denial.
pub const MIN_OVERRIDE_REASON: usize = 20;

/// Maximum size of a text read back from an editor: the longest answer with the widest characters.
pub const MAX_EDITED_BYTES: u64 = 4 * 20_000;

/// Minimum terminal size for decisions.
pub const MIN_TERMINAL: (u16, u16) = (60, 18);

/// Interval between comparisons of the wall clock with the steady clock while a timer is pending.
pub const CLOCK_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Time for which the operator sees that the clock was set, or that connections were rejected.
pub const PASSING_ALARM_TIME: Duration = Duration::from_mins(10);

/// Maximum number of events before the log is sealed.
pub const SEAL_EVENTS: u64 = 256;

/// Maximum time before the log is sealed while unsealed events exist.
pub const SEAL_TIME: Duration = Duration::from_secs(1);

/// Maximum number of events after the last signed head: many times the events in progress on a busy console. A
/// crash cannot leave more behind.
pub const MAX_UNSEALED: u64 = 64 * SEAL_EVENTS;

/// Maximum number of log entries after the last signed head; each should have been signed.
pub const MAX_UNSEALED_ENTRIES: u64 = 128;

/// Maximum number of overrides acknowledged at once. Each is an entry of the log, and the number of entries after
/// the last signed head is limited.
pub const MAX_ACKNOWLEDGED: usize = 32;

/// Maximum time between the first and the last event of one session after the last signed head.
pub const MAX_UNSEALED_TIME: Duration = Duration::from_mins(1);

/// Maximum length of an export line: the largest parameters of a record, twice, and some room.
pub const MAX_LINE_BYTES: u64 = 64 * 1024 * 1024;

/// Maximum time that the shutdown of a console waits for the log head to be stored elsewhere.
pub const HEAD_FILE_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum size of text for the terminal's clipboard. As base64 that is just below the 100,000 characters that
/// common terminals accept.
pub const MAX_COPY_BYTES: usize = 72 * 1024;

/// Maximum length of an external name of a memento, a thread or a message.
pub const MAX_MEMENTO_NAME: usize = 256;

/// Maximum size of a memento or turn. The message is the largest part; a prompt with a whole file has about 100
/// KiB.
pub const MAX_MEMENTO_BYTES: usize = 4 * 1024 * 1024;

/// Maximum number of signals in a turn, as defined by the memento contract.
pub const MAX_SIGNALS: usize = 8;

/// Maximum number of affect points in a memento, as defined by its contract.
pub const MAX_AFFECT_POINTS: usize = 5;

/// Time for which an affect point counts.
pub const AFFECT_WINDOW: Duration = Duration::from_mins(30);

/// Maximum number of items in each list of a proposed summary.
pub const MAX_SHAPE_ITEMS: usize = 6;

/// Number of older mementos kept per thread, so that later turns can refer to them.
pub const MAX_MEMENTOS: usize = 8;

/// Number of proposals kept per thread while its summary is frozen; people look at the newest.
pub const MAX_HELD_BACK: usize = 8;

/// Number of sessions per thread recorded as readers of an operator's edit. Any other session must show that it has
/// read the edit.
pub const MAX_EDIT_READERS: usize = 16;

/// Number of turns per thread kept for its screen; TRACE has all of them.
pub const MAX_TURNS: usize = 64;

/// Maximum size of a snapshot file. Long conversations have about 100 KiB.
pub const MAX_SNAPSHOT_BYTES: usize = 8 * 1024 * 1024;

/// Maximum number of entries in each list of a snapshot file; a conversation does not need more to start.
pub const MAX_SNAPSHOT_ITEMS: usize = 200;

/// Number of the newest operator decisions that a snapshot file includes. A reader takes [`MAX_SNAPSHOT_ITEMS`] of
/// all decisions, and the conversation has some of its own.
pub const MAX_ACCOUNT_DECISIONS: usize = 100;

/// Maximum number of threads. At the limit, a new thread replaces an abandoned one ([`ENDED_THREAD_TIME`],
/// [`IDLE_THREAD_TIME`]) or one of its owner; otherwise it is rejected.
pub const MAX_THREADS: usize = 500;

/// Maximum number of threads per owner. A session has one of its own; a bot that serves several people has some
/// more.
pub const MAX_SESSION_THREADS: usize = 50;

/// Maximum number of threads of all sessions of one process, including ended ones. All HTTP clients count as one
/// process here. A fifth of [`MAX_THREADS`], so that one process leaves room for others.
pub const MAX_THREADS_PER_PEER: usize = 100;

/// Time after which a thread of an ended session may be replaced; agents continue yesterday's conversation.
pub const ENDED_THREAD_TIME: Duration = Duration::from_hours(24);

/// Time without a turn after which a thread may be replaced although its session is open. Crashed agents never end
/// their sessions.
pub const IDLE_THREAD_TIME: Duration = Duration::from_hours(30 * 24);

/// Number of ended sessions whose names stay in memory. The record has all of them; these bridge the time until
/// their last records are on disk, which is a few hundred batches.
pub const MAX_ENDED_SESSIONS: usize = 4096;

/// Maximum number of open sessions of one process at the socket. A service for more agents uses several processes,
/// or ends sessions it no longer needs.
pub const MAX_SESSIONS_PER_PEER: usize = 4096;

/// Maximum number of open sessions in total, at about 5 KiB of memory each. The longest idle are ended first.
pub const MAX_SESSIONS: usize = 50_000;

/// Number of idle sessions ended together to make room for a new one; finding them takes longer than ending them.
pub const IDLE_SESSIONS_PER_EVICTION: usize = 500;

/// Maximum reports (errors, outputs, turns, feedback) of one process per second; faster ones wait. People and
/// models produce a few; a replayed decision table produces some hundreds.
pub const REPORTS_PER_SECOND: u64 = 1000;

/// Maximum number of large messages of one process read at a time, so that other processes get room, too.
pub const MAX_LARGE_MESSAGES_PER_PEER: usize = 4;

/// Maximum size of a message to a gateway server. A request of 10 MB can be reviewed; a larger one would not be
/// read.
pub const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// Size above which a message needs room that all connections share.
pub const LARGE_MESSAGE: usize = 64 * 1024;

/// Maximum number of messages above [`LARGE_MESSAGE`] read at a time. Others wait; otherwise many connections
/// together would fill the memory.
pub const MAX_LARGE_MESSAGES: usize = 8;

/// Time that a large message may hold its room without receiving data. A message slower than [`LARGE_MESSAGE_RATE`]
/// for this long is cut off; otherwise a few unfinished ones would block all others.
pub const LARGE_MESSAGE_GRACE: Duration = Duration::from_secs(1);

/// Minimum rate in bytes per second of a large message once it has room. Local processes are far faster.
pub const LARGE_MESSAGE_RATE: usize = 1024 * 1024;

/// Maximum time from the first to the last byte of a message, and for a client to read a response.
pub const MESSAGE_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum time for the header of an HTTP request, and for an idle connection to be kept open.
pub const HEADER_TIMEOUT: Duration = Duration::from_secs(10);

/// Time that a gateway server waits after it could not accept a connection and could not close another one.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Maximum number of connections. Never more than half of the files that may be open.
pub const MAX_CONNECTIONS: usize = 4096;

/// Number of open files requested from the system.
pub const WANTED_OPEN_FILES: u64 = 16_384;

/// Maximum number of HTTP connections, and never more than a quarter of the files that may be open: every call,
/// hook and stream that is answered at once, and some to spare.
pub const MAX_HTTP_CONNECTIONS: usize = 1536;

/// Maximum number of pending calls per connection; further ones are not read until one is answered.
pub const MAX_PENDING_CALLS: usize = 64;

/// Number of differences kept between the loaded Atlases and the shadow Atlases.
pub const DIFFERENCES_KEPT: usize = 200;

/// Maximum number of callers whose requests of the last minute are counted.
pub const MAX_COUNTED_CALLERS: usize = 10_000;

/// Maximum calls of one connection per second; faster ones wait.
pub const CALLS_PER_SECOND: u64 = 2000;

/// Calls that a new connection may make at once: a hook connects anew for each step, and makes a few calls.
pub const FIRST_CALLS: u32 = 16;

/// Maximum number of undelivered notices per address, including those that failed. A steward who is unreachable for
/// that long can read the record.
pub const MAX_NOTICES_PER_ADDRESS: usize = 1000;

/// Maximum number of notices in delivery at a time, each to a different address.
pub const MAX_NOTICES_IN_DELIVERY: usize = 32;

/// Total time limit for the delivery of one notice.
pub const NOTICE_TIMEOUT: Duration = Duration::from_secs(10);

/// Pauses before a notice is retried; the last one is repeated.
pub const NOTICE_RETRY_PAUSES: [Duration; 5] = [
    Duration::from_secs(5),
    Duration::from_secs(30),
    Duration::from_mins(2),
    Duration::from_mins(10),
    Duration::from_hours(1),
];

/// Time after which a notice is no longer retried.
pub const NOTICE_RETRY_PERIOD: Duration = Duration::from_hours(72);

/// Maximum time that the shutdown of a console waits for notices in delivery.
pub const NOTICE_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// Time of silence after which an agent's session ends as timed out. Longer than a night and a day of other work,
/// so that an agent resumed the next morning can continue.
pub const ABANDONED_TIME: Duration = Duration::from_hours(48);

/// Time of silence for a session with running actions; some actions take days. See [`ABANDONED_TIME`].
pub const ABANDONED_RUN_TIME: Duration = Duration::from_hours(24 * 14);

/// Interval between checks for abandoned sessions.
pub const ABANDONED_CHECK_INTERVAL: Duration = Duration::from_mins(10);

/// Times that an agent may go on with a conversation whose session has ended. A session has to look for its
/// predecessor among as many names.
pub const MAX_RESUMPTIONS: u32 = 100;

/// Runs of a rate limit whose exact times a session leaves to its successor. Earlier ones count as the oldest of them.
pub const MAX_RUNS_LEFT: usize = 100;
