PRAGMA application_id = 1413565505;
PRAGMA user_version = 2;
PRAGMA foreign_keys = off;
BEGIN;
CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
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
CREATE TABLE conversation (
    id INTEGER PRIMARY KEY,
    address INTEGER NOT NULL REFERENCES address,
    member TEXT NOT NULL,
    UNIQUE (address, member)
) STRICT;
CREATE TABLE session (
    conversation INTEGER PRIMARY KEY REFERENCES conversation,
    restless INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    session TEXT NOT NULL
) STRICT;
CREATE TABLE life (
    id INTEGER PRIMARY KEY,
    session TEXT NOT NULL UNIQUE,
    conversation INTEGER NOT NULL REFERENCES conversation
) STRICT;
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
CREATE TABLE entry (
    position INTEGER PRIMARY KEY,
    conversation INTEGER NOT NULL REFERENCES conversation,
    life INTEGER NOT NULL REFERENCES life,
    entry TEXT NOT NULL
) STRICT;
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
    act TEXT NOT NULL, told INTEGER NOT NULL DEFAULT 0,
    UNIQUE (session, delivery, part)
) STRICT;
CREATE TABLE file_use (
    holder INTEGER NOT NULL,
    row INTEGER NOT NULL,
    file TEXT NOT NULL,
    PRIMARY KEY (holder, row, file)
) STRICT, WITHOUT ROWID;
INSERT INTO meta VALUES ('alive', 'yes');
INSERT INTO meta VALUES ('epoch', 'ba492e8ca6979df32ed017c37fff864e');
INSERT INTO account VALUES (1, 'telegram', '981');
INSERT INTO account VALUES (2, 'work-slack', NULL);
INSERT INTO address VALUES (1, 1, 'dm', '12345', '');
INSERT INTO address VALUES (2, 1, 'dm', '', '');
INSERT INTO address VALUES (3, 2, 'group', 'C042', 'topic');
INSERT INTO address VALUES (4, 2, 'dm', '', '');
INSERT INTO conversation VALUES (1, 1, '');
INSERT INTO conversation VALUES (2, 2, '');
INSERT INTO conversation VALUES (3, 3, 'alice');
INSERT INTO conversation VALUES (4, 4, '');
INSERT INTO session VALUES (1, 0, 1300, '{"key":{"account":"telegram","kind":"dm","chat":"12345"},"id":"20261115_093000_0badcafe","lives":2,"at":{"account":"telegram","chat":{"id":"12345","kind":"dm"}},"title":"A blue whale","phase":"idle","turns":0,"entries":0,"deliveries":0,"usage":{"input":100,"output":20,"cache_read":0,"cache_write":0,"reasoning":0},"begun":1,"updated":1300}');
INSERT INTO session VALUES (3, 2, 1, '{"key":{"account":"work-slack","kind":"group","chat":"C042","thread":"topic","member":"alice"},"id":"19700101_000000_2568f518","lives":1,"at":{"account":"work-slack","chat":{"id":"C042","kind":"group"},"thread":"topic"},"title":"","phase":{"asking":{"hand":{"turn":{"session":"19700101_000000_2568f518","number":1},"from":{"id":"alice"},"to":{"account":"work-slack","chat":{"id":"C042","kind":"group"},"thread":"topic"},"seqs":[1],"steers":[{"seq":5,"from":{"id":"alice"},"to":{"account":"work-slack","chat":{"id":"C042","kind":"group"},"thread":"topic"},"message":{"text":""}}],"started":["call-1"],"delivery":1,"spoken":0,"deadline":1800001,"deaths":1},"question":{"call":"call-1","text":"Which one?","choices":[{"id":"a","label":"This"}]},"since":1400,"expires":8000}},"turns":0,"entries":0,"deliveries":0,"usage":{"input":0,"output":0,"cache_read":0,"cache_write":0,"reasoning":0},"begun":1,"updated":1}');
INSERT INTO life VALUES (1, '19700101_000000_fc6f932c', 1);
INSERT INTO life VALUES (2, '20261115_093000_0badcafe', 1);
INSERT INTO life VALUES (3, '19700101_000000_2568f518', 3);
INSERT INTO journal VALUES (1, 1, 1, 0, 1000, 'event 1', NULL, '{"id":"event 1","at":1,"from":{"id":"alice"},"to":{"account":"telegram","chat":{"id":"12345","kind":"dm"}},"kind":{"said":{"text":"event 1"}}}');
INSERT INTO journal VALUES (2, 1, 1, 2, 1000, 'event 2', '{"session":"19700101_000000_fc6f932c","number":1}', '{"id":"event 2","at":1,"from":{"id":"alice"},"to":{"account":"telegram","chat":{"id":"12345","kind":"dm"}},"kind":{"said":{"text":"event 2"}}}');
INSERT INTO journal VALUES (3, 1, 1, 6, 1000, 'event 3', 'three deaths', '{"id":"event 3","at":1,"from":{"id":"alice"},"to":{"account":"telegram","chat":{"id":"12345","kind":"dm"}},"kind":{"said":{"text":"event 3"}}}');
INSERT INTO journal VALUES (4, 1, 2, 5, 1000, 'event 4', 'not on the list', '{"id":"event 4","at":1,"from":{"id":"alice"},"to":{"account":"telegram","chat":{"id":"12345","kind":"dm"}},"kind":{"said":{"text":"event 4"}}}');
INSERT INTO journal VALUES (5, 2, 3, 0, 1000, 'event 1', NULL, '{"id":"event 1","at":1,"from":{"id":"alice"},"to":{"account":"work-slack","chat":{"id":"C042","kind":"group"},"thread":"topic"},"kind":{"said":{"text":"event 1"}}}');
INSERT INTO journal VALUES (6, 2, 3, 1, 1000, 'event 2', NULL, '{"id":"event 2","at":1,"from":{"id":"alice"},"to":{"account":"work-slack","chat":{"id":"C042","kind":"group"},"thread":"topic"},"kind":{"said":{"text":"event 2"}}}');
INSERT INTO journal VALUES (7, 2, 3, 3, 1000, 'event 3', NULL, '{"id":"event 3","at":1,"from":{"id":"alice"},"to":{"account":"work-slack","chat":{"id":"C042","kind":"group"},"thread":"topic"},"kind":{"said":{"text":"event 3"}}}');
INSERT INTO journal VALUES (8, 2, 4, 5, 1000, 'event 4', 'not on the list', '{"id":"event 4","at":1,"from":{"id":"alice"},"to":{"account":"work-slack","chat":{"id":"C042","kind":"group"},"thread":"topic"},"kind":{"said":{"text":"event 4"}}}');
INSERT INTO entry VALUES (1, 1, 1, '{"number":1,"at":1,"body":{"said":{"from":{"id":"alice"},"text":"What is a blue whale?"}}}');
INSERT INTO entry VALUES (2, 1, 1, '{"number":2,"at":1100,"turn":{"session":"19700101_000000_fc6f932c","number":1},"body":{"answered":{"text":"Blue whales sing.","reasoning":"signed","usage":{"input":100,"output":20,"cache_read":0,"cache_write":0,"reasoning":0},"sent":{"session":"19700101_000000_fc6f932c","delivery":1,"part":0}}}}');
INSERT INTO entry VALUES (3, 1, 2, '{"number":1,"at":1,"body":{"said":{"from":{"id":"alice"},"text":"And now something else: 会议"}}}');
INSERT INTO outbox VALUES (1, 1, 1, 1, 0, 0, 0, NULL, 1100, '19700101_000000_fc6f932c', 1, 0, 'm1', NULL, '{"post":{"text":"delivery 1.0"}}', 0);
INSERT INTO outbox VALUES (2, 1, 0, 3, 0, 0, 1, NULL, 1100, '19700101_000000_fc6f932c', 2, 0, 'm2', NULL, '{"post":{"text":"delivery 2.0"}}', 0);
INSERT INTO outbox VALUES (3, 1, 1, 1, 2, 0, 1, NULL, 1100, '19700101_000000_fc6f932c', 3, 0, NULL, NULL, '{"post":{"text":"delivery 3.0"}}', 0);
INSERT INTO outbox VALUES (4, 1, 1, 1, 0, 1, 1, NULL, 1100, '19700101_000000_fc6f932c', 4, 0, NULL, NULL, '{"post":{"text":"delivery 4.0"}}', 0);
INSERT INTO outbox VALUES (5, 1, 0, 4, 0, 0, 1, NULL, 1100, '19700101_000000_fc6f932c', 5, 0, NULL, 'the chat is gone', '{"post":{"text":"delivery 5.0"}}', 0);
INSERT INTO outbox VALUES (6, 3, 0, 0, 1, 0, 0, NULL, 0, '19700101_000000_2568f518', 1, 0, NULL, NULL, '{"post":{"text":"delivery 1.0"}}', 0);
INSERT INTO sqlite_sequence VALUES ('journal', 8);
CREATE INDEX session_restless ON session (restless) WHERE restless > 0;
CREATE INDEX journal_unread ON journal (conversation, seq) WHERE state = 0;
CREATE INDEX journal_refused ON journal (state) WHERE state >= 5;
CREATE INDEX entry_conversation ON entry (conversation);
CREATE INDEX outbox_open ON outbox (address) WHERE open = 1;
CREATE INDEX outbox_preview ON outbox (session) WHERE stage = 0;
CREATE INDEX outbox_failed ON outbox (stage) WHERE stage >= 4;
CREATE INDEX outbox_untold ON outbox (address) WHERE stage >= 4 AND told = 0;
CREATE INDEX file_use_file ON file_use (file);
COMMIT;
