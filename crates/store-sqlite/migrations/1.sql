-- Rows are small and keys are integers: what is written with every message is what counts.
-- Small columns stand before large ones, so that a scan does not read the large ones.
-- '' stands for "none" in parts of a key: ids are never empty, and NULLs are never equal.

CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Tells this database from every other, so that search.db knows whose index it is.
INSERT INTO meta VALUES ('epoch', lower(hex(randomblob(16))));
-- A life of the process has begun and has not been closed.
INSERT INTO meta VALUES ('alive', 'no');

CREATE TABLE account (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    cursor TEXT
) STRICT;

CREATE TABLE address (
    id INTEGER PRIMARY KEY,
    account INTEGER NOT NULL REFERENCES account,
    kind TEXT NOT NULL,
    chat TEXT NOT NULL,
    thread TEXT NOT NULL,
    UNIQUE (account, chat, thread, kind)
) STRICT;

-- A session key is an address and, where each person has a session of their own, a member.
CREATE TABLE conversation (
    id INTEGER PRIMARY KEY,
    address INTEGER NOT NULL REFERENCES address,
    member TEXT NOT NULL,
    UNIQUE (address, member)
) STRICT;

-- restless: 0 nothing to do, 1 something waits, 2 a turn is in hand.
CREATE TABLE session (
    conversation INTEGER PRIMARY KEY REFERENCES conversation,
    restless INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    session TEXT NOT NULL
) STRICT;
CREATE INDEX session_restless ON session (restless) WHERE restless > 0;

CREATE TABLE life (
    id INTEGER PRIMARY KEY,
    session TEXT NOT NULL UNIQUE,
    conversation INTEGER NOT NULL REFERENCES conversation
) STRICT;

-- state: 0 unread, 1 taken, 2 bound, 3 handled, 4 ignored, 5 denied, 6 quarantined.
-- detail: the turn it is bound to, or the reason.
-- AUTOINCREMENT, because a number must not come back when the newest row is pruned.
CREATE TABLE journal (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    account INTEGER NOT NULL REFERENCES account,
    conversation INTEGER NOT NULL REFERENCES conversation,
    state INTEGER NOT NULL,
    at INTEGER NOT NULL,
    event TEXT NOT NULL,
    detail TEXT,
    inbound TEXT NOT NULL,
    UNIQUE (account, event)
) STRICT;
CREATE INDEX journal_unread ON journal (conversation, seq) WHERE state = 0;
CREATE INDEX journal_refused ON journal (state) WHERE state >= 5;

-- Never deleted, so the newest position is also their number.
CREATE TABLE entry (
    position INTEGER PRIMARY KEY,
    conversation INTEGER NOT NULL REFERENCES conversation,
    life INTEGER NOT NULL REFERENCES life,
    entry TEXT NOT NULL
) STRICT;
CREATE INDEX entry_conversation ON entry (conversation);

-- stage: 0 previewing, 1 waiting, 2 leaving, 3 delivered, 4 undeliverable, 5 abandoned.
-- doubt: 0 none, 1 its preview is on its way, 2 lasting. open: it still has to be delivered; apart
-- from stage, so that an attempt does not touch the index.
CREATE TABLE outbox (
    id INTEGER PRIMARY KEY,
    address INTEGER NOT NULL REFERENCES address,
    open INTEGER NOT NULL,
    stage INTEGER NOT NULL,
    doubt INTEGER NOT NULL,
    plain INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    not_before INTEGER,
    at INTEGER NOT NULL,
    session TEXT NOT NULL,
    delivery INTEGER NOT NULL,
    part INTEGER NOT NULL,
    shown TEXT,
    reason TEXT,
    act TEXT NOT NULL,
    UNIQUE (session, delivery, part)
) STRICT;
CREATE INDEX outbox_open ON outbox (address) WHERE open = 1;
CREATE INDEX outbox_preview ON outbox (session) WHERE stage = 0;
CREATE INDEX outbox_failed ON outbox (stage) WHERE stage >= 4;
