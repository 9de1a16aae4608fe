CREATE TABLE events (
    position INTEGER PRIMARY KEY,
    trace_version TEXT NOT NULL,
    event_id TEXT NOT NULL UNIQUE,
    trace_id TEXT NOT NULL,
    span_id TEXT NOT NULL,
    parent_span_id TEXT,
    session_id TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    timestamp TEXT NOT NULL,
    event_type TEXT NOT NULL,
    payload TEXT NOT NULL,
    previous_hash TEXT NOT NULL,
    hash TEXT NOT NULL,
    UNIQUE (session_id, sequence)
) STRICT;
CREATE TABLE heads (
    session_id TEXT PRIMARY KEY,
    count INTEGER NOT NULL,
    hash TEXT NOT NULL,
    agent TEXT NOT NULL,
    started_at TEXT NOT NULL,
    last_at TEXT NOT NULL,
    ended INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE state (
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID;
PRAGMA application_id = 1129464113;
PRAGMA user_version = 1;
