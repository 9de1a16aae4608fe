CREATE TABLE state (
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE log (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    log_id TEXT NOT NULL
) STRICT;
CREATE TABLE sessions (
    number INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL UNIQUE,
    count INTEGER NOT NULL,
    hash BLOB NOT NULL,
    agent TEXT NOT NULL,
    started_at TEXT NOT NULL,
    last_at TEXT NOT NULL,
    ended INTEGER NOT NULL
) STRICT;
CREATE TABLE events (
    position INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    record TEXT NOT NULL,
    hash BLOB NOT NULL,
    UNIQUE (session, sequence)
) STRICT;
CREATE TABLE seals (
    size INTEGER PRIMARY KEY,
    note TEXT NOT NULL
) STRICT;
CREATE TABLE atlases (
    hash TEXT PRIMARY KEY,
    atlas_id TEXT NOT NULL,
    version TEXT NOT NULL,
    text TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE VIEW trace AS
    SELECT s.session_id, e.sequence,
        substr(e.record, instr(e.record, '{'), length(e.record) - instr(e.record, '{') - 64) AS payload,
        substr(e.record, 1, instr(e.record, '{') - 1) AS envelope,
        substr(e.record, -64) AS previous_hash,
        lower(hex(e.hash)) AS hash
    FROM events e JOIN sessions s ON s.number = e.session
    WHERE instr(e.record, '{') > 0
    ORDER BY e.position;
PRAGMA application_id = 1129464113;
PRAGMA user_version = 2;
