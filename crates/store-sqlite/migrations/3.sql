-- Lives, branches, rewinds and owners. Runs with foreign keys off, because tables are made anew.

CREATE TABLE person (
    id INTEGER PRIMARY KEY,
    account INTEGER NOT NULL REFERENCES account,
    name TEXT NOT NULL,
    UNIQUE (account, name)
) STRICT;

-- side: 0 for the conversation itself, else the number of a session beside it.
-- owner: whose it is; NULL where it is everybody's who takes part in it.
-- owned_from: entries up to here were recorded while it was another's or nobody's.
CREATE TABLE conversation_3 (
    id INTEGER PRIMARY KEY,
    address INTEGER NOT NULL REFERENCES address,
    side INTEGER NOT NULL,
    owner INTEGER REFERENCES person,
    owned_from INTEGER NOT NULL,
    member TEXT NOT NULL,
    UNIQUE (address, member, side)
) STRICT;
INSERT INTO conversation_3 SELECT id, address, 0, NULL, 0, member FROM conversation;
DROP TABLE conversation;
ALTER TABLE conversation_3 RENAME TO conversation;
CREATE INDEX conversation_owner ON conversation (owner) WHERE owner IS NOT NULL;

-- A direct chat of a person may be at no chat too, so nobody is told apart by a kind of their own.
UPDATE address SET kind = 'nobody' WHERE chat = '';

-- A conversation of one person among several is theirs. A direct chat is the person's who spoke first.
INSERT OR IGNORE INTO person (account, name)
    SELECT d.account, c.member FROM conversation c JOIN address d ON d.id = c.address
    WHERE c.member <> '';
CREATE TEMP TABLE began AS
    SELECT e.conversation, d.account, min(e.position),
        coalesce(e.entry -> '$.body.said.from', e.entry -> '$.body.aside.from') AS sender,
        coalesce(e.entry ->> '$.body.said.from.id', e.entry ->> '$.body.aside.from.id') AS name
    FROM entry e JOIN conversation c ON c.id = e.conversation JOIN address d ON d.id = c.address
    WHERE d.kind = 'dm' AND c.member = ''
        AND (e.entry ->> '$.body.said' IS NOT NULL OR e.entry ->> '$.body.aside' IS NOT NULL)
    GROUP BY e.conversation;
INSERT OR IGNORE INTO person (account, name) SELECT account, name FROM began;
UPDATE conversation SET owner =
    (SELECT p.id FROM began b JOIN person p ON p.account = b.account AND p.name = b.name
     WHERE b.conversation = conversation.id)
    WHERE member = '';
UPDATE conversation SET owner =
    (SELECT p.id FROM address d JOIN person p ON p.account = d.account AND p.name = conversation.member
     WHERE d.id = conversation.address)
    WHERE member <> '';

-- put_away: how often it was tried. active: when something was said in it last, once it is over.
-- source: the life it is a branch of. past: what is kept of it, once it is over.
CREATE TABLE life_3 (
    id INTEGER PRIMARY KEY,
    conversation INTEGER NOT NULL REFERENCES conversation,
    put_away INTEGER NOT NULL DEFAULT 0,
    active INTEGER NOT NULL DEFAULT 0,
    session TEXT NOT NULL UNIQUE,
    source TEXT,
    past TEXT
) STRICT;
INSERT INTO life_3 (id, conversation, session) SELECT id, conversation, session FROM life;
DROP TABLE life;
ALTER TABLE life_3 RENAME TO life;
CREATE INDEX life_conversation ON life (conversation);

-- restless: 0 nothing to do, 1 something waits, 2 a turn is in hand.
-- watched: its life may come to be over by itself. spared: it is not forgotten, however old.
-- A reference to a life would be looked for in every row whenever a life is forgotten.
CREATE TABLE session_3 (
    conversation INTEGER PRIMARY KEY REFERENCES conversation,
    life INTEGER NOT NULL,
    restless INTEGER NOT NULL,
    watched INTEGER NOT NULL,
    spared INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    active INTEGER NOT NULL,
    session TEXT NOT NULL
) STRICT;
INSERT INTO session_3
    SELECT s.conversation, l.id, s.restless, s.session ->> '$.turns' > 0, s.restless > 0,
        s.updated, s.updated,
        CASE WHEN b.sender IS NULL THEN json_set(s.session, '$.active', s.updated)
            ELSE json_set(s.session, '$.active', s.updated, '$.origin',
                json_object('from', json(b.sender), 'at', json(s.session -> '$.at'))) END
    FROM session s JOIN life l ON l.session = s.session ->> '$.id'
        LEFT JOIN began b ON b.conversation = s.conversation;
DROP TABLE began;
DROP TABLE session;
ALTER TABLE session_3 RENAME TO session;
CREATE INDEX session_restless ON session (restless) WHERE restless > 0;

-- rewound: the rewind that took it back, or 0. Positions are never given twice.
CREATE TABLE entry_3 (
    position INTEGER PRIMARY KEY,
    life INTEGER NOT NULL,
    number INTEGER NOT NULL,
    at INTEGER NOT NULL,
    summary INTEGER NOT NULL,
    rewound INTEGER NOT NULL,
    entry TEXT NOT NULL
) STRICT;
INSERT INTO entry_3
    SELECT position, life, entry ->> '$.number', entry ->> '$.at', 0, 0, entry FROM entry;
DROP TABLE entry;
ALTER TABLE entry_3 RENAME TO entry;
-- What was taken back is found apart, so that whoever reads a life does not step over it.
CREATE INDEX entry_standing ON entry (life) WHERE rewound = 0;
CREATE INDEX entry_rewound ON entry (life) WHERE rewound > 0;
CREATE INDEX entry_summary ON entry (life) WHERE summary = 1 AND rewound = 0;

-- The newest position that was ever given to an entry that is gone, and how many are gone.
INSERT INTO meta VALUES ('last_position', '0');
INSERT INTO meta VALUES ('forgotten', '0');

CREATE TABLE rewind (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    life INTEGER NOT NULL REFERENCES life,
    "from" INTEGER NOT NULL,
    upto INTEGER NOT NULL,
    entries INTEGER NOT NULL,
    at INTEGER NOT NULL,
    person TEXT
) STRICT;
CREATE INDEX rewind_life ON rewind (life);

-- A stretch of another life's entries that a branch begins with: as they stood when the newest entry
-- had this position and the newest rewind this number.
CREATE TABLE borrowed (
    life INTEGER NOT NULL REFERENCES life,
    source INTEGER NOT NULL REFERENCES life,
    "from" INTEGER NOT NULL,
    upto INTEGER NOT NULL,
    position INTEGER NOT NULL,
    rewind INTEGER NOT NULL
) STRICT;
CREATE INDEX borrowed_life ON borrowed (life);
CREATE INDEX borrowed_source ON borrowed (source);
