PRAGMA application_id = 1413565505;
PRAGMA user_version = 10;
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
    act TEXT NOT NULL, told INTEGER NOT NULL DEFAULT 0, anew INTEGER NOT NULL DEFAULT 0, settled INTEGER,
    UNIQUE (session, delivery, part)
) STRICT;
CREATE TABLE file_use (
    holder INTEGER NOT NULL,
    row INTEGER NOT NULL,
    file TEXT NOT NULL,
    PRIMARY KEY (holder, row, file)
) STRICT, WITHOUT ROWID;
CREATE TABLE person (
    id INTEGER PRIMARY KEY,
    account INTEGER NOT NULL REFERENCES account,
    name TEXT NOT NULL,
    UNIQUE (account, name)
) STRICT;
CREATE TABLE "conversation" (
    id INTEGER PRIMARY KEY,
    address INTEGER NOT NULL REFERENCES address,
    side INTEGER NOT NULL,
    owner INTEGER REFERENCES person,
    owned_from INTEGER NOT NULL,
    member TEXT NOT NULL,
    UNIQUE (address, member, side)
) STRICT;
CREATE TABLE "life" (
    id INTEGER PRIMARY KEY,
    conversation INTEGER NOT NULL REFERENCES conversation,
    put_away INTEGER NOT NULL DEFAULT 0,
    active INTEGER NOT NULL DEFAULT 0,
    session TEXT NOT NULL UNIQUE,
    source TEXT,
    past TEXT
) STRICT;
CREATE TABLE "session" (
    conversation INTEGER PRIMARY KEY REFERENCES conversation,
    life INTEGER NOT NULL,
    restless INTEGER NOT NULL,
    watched INTEGER NOT NULL,
    spared INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    active INTEGER NOT NULL,
    session TEXT NOT NULL
) STRICT;
CREATE TABLE "entry" (
    position INTEGER PRIMARY KEY,
    life INTEGER NOT NULL,
    number INTEGER NOT NULL,
    at INTEGER NOT NULL,
    summary INTEGER NOT NULL,
    rewound INTEGER NOT NULL,
    entry TEXT NOT NULL
) STRICT;
CREATE TABLE rewind (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    life INTEGER NOT NULL REFERENCES life,
    "from" INTEGER NOT NULL,
    upto INTEGER NOT NULL,
    entries INTEGER NOT NULL,
    at INTEGER NOT NULL,
    person TEXT
) STRICT;
CREATE TABLE borrowed (
    life INTEGER NOT NULL REFERENCES life,
    source INTEGER NOT NULL REFERENCES life,
    "from" INTEGER NOT NULL,
    upto INTEGER NOT NULL,
    position INTEGER NOT NULL,
    rewind INTEGER NOT NULL
) STRICT;
CREATE TABLE guests (
    account INTEGER PRIMARY KEY REFERENCES account,
    revision INTEGER NOT NULL,
    book TEXT NOT NULL
) STRICT;
CREATE TABLE audit (
    seq INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    deed TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail TEXT NOT NULL,
    previous TEXT NOT NULL,
    hash TEXT NOT NULL
) STRICT;
CREATE TABLE approved (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    digest TEXT NOT NULL UNIQUE,
    approved TEXT NOT NULL
) STRICT;
CREATE TABLE spending (
    day INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    account TEXT NOT NULL,
    payer TEXT NOT NULL,
    messages INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    micros INTEGER NOT NULL,
    PRIMARY KEY (day, kind, account, payer)
) STRICT, WITHOUT ROWID;
CREATE TABLE unanswered (
    account INTEGER NOT NULL REFERENCES account,
    number INTEGER NOT NULL,
    at INTEGER NOT NULL,
    state INTEGER NOT NULL,
    reason TEXT NOT NULL,
    chat TEXT NOT NULL,
    sender TEXT NOT NULL,
    event TEXT NOT NULL,
    message TEXT,
    PRIMARY KEY (account, number)
) STRICT, WITHOUT ROWID;
INSERT INTO meta VALUES ('alive', 'yes');
INSERT INTO meta VALUES ('epoch', 'd9ad695b3b6f5b83643d5ca22311986a');
INSERT INTO meta VALUES ('forgotten', '0');
INSERT INTO meta VALUES ('last_position', '0');
INSERT INTO account VALUES (1, 'telegram', '981');
INSERT INTO account VALUES (2, 'work-slack', NULL);
INSERT INTO account VALUES (3, 'sms', NULL);
INSERT INTO account VALUES (4, 'one', NULL);
INSERT INTO address VALUES (1, 1, 'dm', '12345', '');
INSERT INTO address VALUES (2, 1, 'nobody', '', '');
INSERT INTO address VALUES (3, 2, 'group', 'C042', 'topic');
INSERT INTO address VALUES (4, 2, 'nobody', '', '');
INSERT INTO address VALUES (5, 3, 'dm', '', '');
INSERT INTO address VALUES (6, 3, 'nobody', '', '');
INSERT INTO address VALUES (7, 3, 'dm', '+4917012345', '');
INSERT INTO address VALUES (8, 4, 'dm', 'c', '');
INSERT INTO address VALUES (9, 4, 'dm', 'approves', '');
INSERT INTO address VALUES (10, 4, 'dm', 'spends', '');
INSERT INTO journal VALUES (1, 1, 1, 0, 1000, 'event 1', NULL, '{"id":"event 1","at":1,"from":{"id":"alice"},"to":{"account":"telegram","chat":{"id":"12345","kind":"dm"}},"kind":{"said":{"text":"event 1"}}}');
INSERT INTO journal VALUES (2, 1, 1, 2, 1000, 'event 2', '{"session":"19700101_000000_fc6f932c","number":1}', '{"id":"event 2","at":1,"from":{"id":"alice"},"to":{"account":"telegram","chat":{"id":"12345","kind":"dm"}},"kind":{"said":{"text":"event 2"}}}');
INSERT INTO journal VALUES (3, 1, 1, 6, 1000, 'event 3', 'three deaths', '{"id":"event 3","at":1,"from":{"id":"alice"},"to":{"account":"telegram","chat":{"id":"12345","kind":"dm"}},"kind":{"said":{"text":"event 3"}}}');
INSERT INTO journal VALUES (4, 1, 2, 5, 1000, 'event 4', 'not on the list', '{"id":"event 4","at":1,"from":{"id":"alice"},"to":{"account":"telegram","chat":{"id":"12345","kind":"dm"}},"kind":{"said":{"text":"event 4"}}}');
INSERT INTO journal VALUES (5, 2, 3, 0, 1000, 'event 1', NULL, '{"id":"event 1","at":1,"from":{"id":"alice"},"to":{"account":"work-slack","chat":{"id":"C042","kind":"group"},"thread":"topic"},"kind":{"said":{"text":"event 1"}}}');
INSERT INTO journal VALUES (6, 2, 3, 1, 1000, 'event 2', NULL, '{"id":"event 2","at":1,"from":{"id":"alice"},"to":{"account":"work-slack","chat":{"id":"C042","kind":"group"},"thread":"topic"},"kind":{"said":{"text":"event 2"}}}');
INSERT INTO journal VALUES (7, 2, 3, 3, 1000, 'event 3', NULL, '{"id":"event 3","at":1,"from":{"id":"alice"},"to":{"account":"work-slack","chat":{"id":"C042","kind":"group"},"thread":"topic"},"kind":{"said":{"text":"event 3"}}}');
INSERT INTO journal VALUES (8, 2, 4, 5, 1000, 'event 4', 'not on the list', '{"id":"event 4","at":1,"from":{"id":"alice"},"to":{"account":"work-slack","chat":{"id":"C042","kind":"group"},"thread":"topic"},"kind":{"said":{"text":"event 4"}}}');
INSERT INTO journal VALUES (9, 3, 5, 1, 2500, 'a horn', NULL, '{"id":"a horn","at":1,"from":{"id":"alice"},"to":{"account":"sms","chat":{"id":"any","kind":"dm"}},"kind":{"said":{"text":"a horn","files":[{"id":"horn.jpg","name":"horn.jpg","mime":"image/jpeg","size":3}]}}}');
INSERT INTO journal VALUES (10, 3, 8, 0, 2500, 'a task', NULL, '{"id":"a task","at":1,"from":{"id":"alice"},"to":{"account":"sms","chat":{"id":"any","kind":"dm"}},"kind":{"said":{"text":"a task"}}}');
INSERT INTO journal VALUES (11, 3, 7, 5, 2500, 'a stranger', 'not on the list', '{"id":"a stranger","at":1,"from":{"id":"alice"},"to":{"account":"sms","chat":{"id":"any","kind":"dm"}},"kind":{"said":{"text":"a stranger"}}}');
INSERT INTO outbox VALUES (1, 1, 1, 1, 0, 0, 0, NULL, 1100, '19700101_000000_fc6f932c', 1, 0, 'm1', NULL, '{"post":{"text":"delivery 1.0"}}', 0, 0, NULL);
INSERT INTO outbox VALUES (2, 1, 0, 3, 0, 0, 1, NULL, 1100, '19700101_000000_fc6f932c', 2, 0, 'm2', NULL, '{"post":{"text":"delivery 2.0"}}', 0, 0, 1200);
INSERT INTO outbox VALUES (3, 1, 1, 1, 2, 0, 1, NULL, 1100, '19700101_000000_fc6f932c', 3, 0, NULL, NULL, '{"post":{"text":"delivery 3.0"}}', 0, 0, NULL);
INSERT INTO outbox VALUES (4, 1, 1, 1, 0, 1, 1, NULL, 1100, '19700101_000000_fc6f932c', 4, 0, NULL, NULL, '{"post":{"text":"delivery 4.0"}}', 0, 0, NULL);
INSERT INTO outbox VALUES (5, 1, 0, 4, 0, 0, 1, NULL, 1100, '19700101_000000_fc6f932c', 5, 0, NULL, 'the chat is gone', '{"post":{"text":"delivery 5.0"}}', 0, 0, 1200);
INSERT INTO outbox VALUES (6, 3, 0, 0, 1, 0, 0, NULL, 0, '19700101_000000_2568f518', 1, 0, NULL, NULL, '{"post":{"text":"delivery 1.0"}}', 0, 0, NULL);
INSERT INTO outbox VALUES (7, 7, 0, 4, 0, 0, 1, NULL, 1, '20261115_094000_0badcafe', 7, 0, NULL, 'the number is gone', '{"post":{"text":"delivery 7.0","files":[{"id":"horn.jpg","name":"horn.jpg","mime":"image/jpeg","size":3}]}}', 1, 0, 2550);
INSERT INTO outbox VALUES (8, 7, 1, 1, 0, 0, 0, NULL, 2600, '20261115_094000_0badcafe', 8, 0, NULL, NULL, '{"post":{"text":"delivery 8.0"}}', 1, 0, NULL);
INSERT INTO outbox VALUES (9, 8, 1, 1, 0, 0, 0, NULL, 3004, 'pairing', 1, 0, NULL, NULL, '{"post":{"text":"delivery 1.0"}}', 0, 0, NULL);
INSERT INTO file_use VALUES (0, 9, 'horn.jpg');
INSERT INTO file_use VALUES (1, 7, 'horn.jpg');
INSERT INTO person VALUES (1, 1, 'alice');
INSERT INTO person VALUES (2, 2, 'alice');
INSERT INTO conversation VALUES (1, 1, 0, 1, 0, '');
INSERT INTO conversation VALUES (2, 2, 0, NULL, 0, '');
INSERT INTO conversation VALUES (3, 3, 0, 2, 0, 'alice');
INSERT INTO conversation VALUES (4, 4, 0, NULL, 0, '');
INSERT INTO conversation VALUES (5, 5, 0, NULL, 0, '');
INSERT INTO conversation VALUES (6, 5, 1, NULL, 0, '');
INSERT INTO conversation VALUES (7, 6, 0, NULL, 0, '');
INSERT INTO conversation VALUES (8, 5, 2, NULL, 0, '');
INSERT INTO conversation VALUES (9, 9, 0, NULL, 0, '');
INSERT INTO conversation VALUES (10, 10, 0, NULL, 0, '');
INSERT INTO life VALUES (1, 1, 0, 0, '19700101_000000_fc6f932c', NULL, NULL);
INSERT INTO life VALUES (2, 1, 0, 0, '20261115_093000_0badcafe', NULL, NULL);
INSERT INTO life VALUES (3, 3, 0, 0, '19700101_000000_2568f518', NULL, NULL);
INSERT INTO life VALUES (4, 5, 1, 2000, '19700101_000002_1b37c8cc', NULL, '{"id":"19700101_000002_1b37c8cc","title":"Narwhals","turns":3,"entries":0,"deliveries":0,"usage":{"input":0,"output":0,"cache_read":0,"cache_write":0,"reasoning":0},"cost":{"micros":0,"status":"free"},"prompt":0,"preferences":{},"marks":[],"speakers":[],"begun":2000,"active":2000,"why":"branched"}');
INSERT INTO life VALUES (5, 5, 0, 0, '20261115_094000_0badcafe', '19700101_000002_1b37c8cc', NULL);
INSERT INTO life VALUES (6, 6, 0, 0, '19700101_000002_1eaa623b', NULL, NULL);
INSERT INTO life VALUES (7, 9, 0, 0, '19700101_000000_094c21fc', NULL, NULL);
INSERT INTO life VALUES (8, 10, 0, 0, '19700101_000000_685fcbb4', NULL, NULL);
INSERT INTO session VALUES (1, 2, 0, 0, 0, 1300, 1300, '{"key":{"account":"telegram","kind":"dm","chat":"12345"},"id":"20261115_093000_0badcafe","lives":2,"at":{"account":"telegram","chat":{"id":"12345","kind":"dm"}},"origin":{"from":{"id":"alice"},"at":{"account":"telegram","chat":{"id":"12345","kind":"dm"}}},"title":"A blue whale","life":"continuing","phase":"idle","sides":0,"turns":0,"entries":0,"deliveries":0,"usage":{"input":100,"output":20,"cache_read":0,"cache_write":0,"reasoning":0},"cost":{"micros":0,"status":"unknown"},"prompt":0,"preferences":{},"speakers":[],"begun":1,"active":1300,"updated":1300}');
INSERT INTO session VALUES (3, 3, 2, 0, 9223372036854775807, 1, 1, '{"key":{"account":"work-slack","kind":"group","chat":"C042","thread":"topic","member":"alice"},"id":"19700101_000000_2568f518","lives":1,"at":{"account":"work-slack","chat":{"id":"C042","kind":"group"},"thread":"topic"},"title":"","life":"continuing","phase":{"asking":{"hand":{"turn":{"session":"19700101_000000_2568f518","number":1},"from":{"id":"alice"},"to":{"account":"work-slack","chat":{"id":"C042","kind":"group"},"thread":"topic"},"seqs":[1],"steers":[{"seq":5,"from":{"id":"alice"},"to":{"account":"work-slack","chat":{"id":"C042","kind":"group"},"thread":"topic"},"message":{"text":""}}],"started":["call-1"],"delivery":1,"spoken":0,"began":0,"heard":0,"work":"plain","during":"words","done":"none","usage":{"input":0,"output":0,"cache_read":0,"cache_write":0,"reasoning":0},"cost":{"micros":0,"status":"free"},"deadline":1800001,"deaths":1},"question":{"call":"call-1","text":"Which one?","choices":[{"id":"a","label":"This"}]},"since":1400,"expires":8000}},"sides":0,"turns":0,"entries":0,"deliveries":0,"usage":{"input":0,"output":0,"cache_read":0,"cache_write":0,"reasoning":0},"cost":{"micros":0,"status":"unknown"},"prompt":0,"preferences":{},"speakers":[],"begun":1,"active":1,"updated":1}');
INSERT INTO session VALUES (5, 5, 0, 1, 0, 2000, 2200, '{"key":{"account":"sms","kind":"dm"},"id":"20261115_094000_0badcafe","lives":2,"at":{"account":"sms","chat":{"id":"+4917012345","kind":"dm"}},"origin":{"from":{"id":"alice"},"at":{"account":"sms","chat":{"id":"+4917012345","kind":"dm"}}},"title":"A branch","life":"fresh","phase":"idle","sides":0,"turns":3,"entries":0,"deliveries":0,"usage":{"input":0,"output":0,"cache_read":0,"cache_write":0,"reasoning":0},"cost":{"micros":0,"status":"free"},"prompt":0,"preferences":{},"speakers":[],"begun":2000,"active":2200,"updated":2000}');
INSERT INTO session VALUES (6, 6, 0, 0, 9223372036854775807, 2400, 2400, '{"key":{"account":"sms","kind":"dm","side":1},"id":"19700101_000002_1eaa623b","lives":1,"at":{"account":"sms","chat":{"id":"+4917012345","kind":"dm"}},"title":"","life":"suspended","phase":"idle","sides":0,"turns":0,"entries":0,"deliveries":0,"usage":{"input":0,"output":0,"cache_read":0,"cache_write":0,"reasoning":0},"cost":{"micros":0,"status":"free"},"prompt":0,"preferences":{},"speakers":[],"begun":2400,"active":2400,"updated":2400}');
INSERT INTO session VALUES (9, 7, 0, 0, 0, 1, 1, '{"key":{"account":"one","kind":"dm","chat":"approves"},"id":"19700101_000000_094c21fc","lives":1,"at":{"account":"one","chat":{"id":"approves","kind":"dm"}},"title":"","life":"fresh","phase":"idle","sides":0,"turns":0,"entries":0,"deliveries":0,"usage":{"input":0,"output":0,"cache_read":0,"cache_write":0,"reasoning":0},"cost":{"micros":0,"status":"free"},"prompt":0,"preferences":{},"speakers":[],"begun":1,"active":1,"updated":1}');
INSERT INTO session VALUES (10, 8, 0, 0, 0, 1, 1, '{"key":{"account":"one","kind":"dm","chat":"spends"},"id":"19700101_000000_685fcbb4","lives":1,"at":{"account":"one","chat":{"id":"spends","kind":"dm"}},"title":"","life":"fresh","phase":"idle","sides":0,"turns":0,"entries":0,"deliveries":0,"usage":{"input":0,"output":0,"cache_read":0,"cache_write":0,"reasoning":0},"cost":{"micros":0,"status":"free"},"prompt":0,"preferences":{},"speakers":[],"begun":1,"active":1,"updated":1}');
INSERT INTO entry VALUES (1, 1, 1, 1, 0, 0, '{"number":1,"at":1,"body":{"said":{"from":{"id":"alice"},"text":"What is a blue whale?"}}}');
INSERT INTO entry VALUES (2, 1, 2, 1100, 0, 0, '{"number":2,"at":1100,"turn":{"session":"19700101_000000_fc6f932c","number":1},"body":{"answered":{"text":"Blue whales sing.","reasoning":"signed","usage":{"input":100,"output":20,"cache_read":0,"cache_write":0,"reasoning":0},"cost":{"micros":0,"status":"unknown"},"sent":{"session":"19700101_000000_fc6f932c","delivery":1,"part":0}}}}');
INSERT INTO entry VALUES (3, 2, 1, 1, 0, 0, '{"number":1,"at":1,"body":{"said":{"from":{"id":"alice"},"text":"And now something else: 会议"}}}');
INSERT INTO entry VALUES (4, 4, 1, 1, 0, 0, '{"number":1,"at":1,"body":{"said":{"from":{"id":"alice"},"text":"narwhal 1"}}}');
INSERT INTO entry VALUES (5, 4, 2, 1, 0, 0, '{"number":2,"at":1,"body":{"said":{"from":{"id":"alice"},"text":"narwhal 2"}}}');
INSERT INTO entry VALUES (6, 4, 3, 1, 0, 0, '{"number":3,"at":1,"body":{"said":{"from":{"id":"alice"},"text":"narwhal 3"}}}');
INSERT INTO entry VALUES (7, 4, 4, 1, 0, 0, '{"number":4,"at":1,"body":{"said":{"from":{"id":"alice"},"text":"narwhal 4"}}}');
INSERT INTO entry VALUES (8, 4, 5, 1, 0, 1, '{"number":5,"at":1,"body":{"said":{"from":{"id":"alice"},"text":"narwhal 5"}}}');
INSERT INTO entry VALUES (9, 4, 6, 1, 0, 0, '{"number":6,"at":1,"body":{"said":{"from":{"id":"alice"},"text":"narwhal 6"}}}');
INSERT INTO entry VALUES (10, 4, 7, 1, 1, 0, '{"number":7,"at":1,"body":{"summary":{"after":1,"upto":3,"text":"in short","usage":{"input":9,"output":0,"cache_read":0,"cache_write":0,"reasoning":0},"cost":{"micros":7,"status":"known"}}}}');
INSERT INTO entry VALUES (11, 5, 8, 1, 0, 0, '{"number":8,"at":1,"body":{"said":{"from":{"id":"alice"},"text":"narwhal 8"}}}');
INSERT INTO rewind VALUES (1, 4, 5, 5, 1, 2100, 'alice');
INSERT INTO rewind VALUES (2, 5, 4, 4, 1, 2300, NULL);
INSERT INTO borrowed VALUES (5, 4, 0, 3, 10, 1);
INSERT INTO borrowed VALUES (5, 4, 5, 7, 10, 1);
INSERT INTO guests VALUES (4, 1, '{"requests":[{"id":"0505050505050505","sender":"bob","name":"Bob","at":{"account":"one","chat":{"id":"c","kind":"dm"}},"asked":3002,"expires":3603002,"code":{"salt":"05050505050505050505050505050505","digest":"ed924a20327695274a716a97ec539c0c39bcfe8defe329b66bb4540832156c55"}}],"issued":[{"id":"0606060606060606","by":"operator","reach":"direct","expires":3603003,"code":{"salt":"06060606060606060606060606060606","digest":"bea80f1afd1c8190e23e4d3f0f3123f08490219b633446aef4ddbe9a05bfb1bb"}}],"guests":{"alice":{"since":3001,"by":"operator","reach":"everywhere"}},"answered":[["bob",3002]],"failures":0,"locked_until":null,"guessers":[],"guesses":0}');
INSERT INTO audit VALUES (1, 3004, 'operator', 'code_issued', 'one:alice', 'everywhere', 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855', '4c4283a4de0fd4968468a56152ef50b88e58b49496d7ffe52e2a6fe74e8b8234');
INSERT INTO audit VALUES (2, 3004, 'operator', 'let_in', 'one:alice', 'everywhere', '4c4283a4de0fd4968468a56152ef50b88e58b49496d7ffe52e2a6fe74e8b8234', 'd434401b6d6ba66a54c7725fb18801ae42b1999ceb42a08a3717affdb71fa1b5');
INSERT INTO audit VALUES (3, 3005, 'operator', 'settings_changed', 'one:alice', 'everywhere', 'd434401b6d6ba66a54c7725fb18801ae42b1999ceb42a08a3717affdb71fa1b5', '6574b93f79fff358c98ef874ab3fb5ff6d2047ddbd979ad825231802c3d975cf');
INSERT INTO audit VALUES (4, 1, 'one:bob', 'approved', 'one:alice', 'run_program, for good', '6574b93f79fff358c98ef874ab3fb5ff6d2047ddbd979ad825231802c3d975cf', '2e23d5463e13bd42f38799fcedab8b516a364137fb15628f773fd2d0c75bf506');
INSERT INTO approved VALUES (1, '0101010101010101010101010101010101010101010101010101010101010101', '{"digest":"0101010101010101010101010101010101010101010101010101010101010101","tool":"run_program","account":"one","sender":"alice","by":"bob","shown":"May I call it 1 times?","at":3006}');
INSERT INTO approved VALUES (2, '0202020202020202020202020202020202020202020202020202020202020202', '{"digest":"0202020202020202020202020202020202020202020202020202020202020202","tool":"run_program","account":"one","sender":"alice","by":"bob","shown":"May I call it 2 times?","at":3006}');
INSERT INTO spending VALUES (20000, 0, '', 'Alice', 1, 1200, 34);
INSERT INTO spending VALUES (20000, 1, 'one', 'bob', 1, 1200, 34);
INSERT INTO spending VALUES (20000, 2, 'one', 'c', 1, 1200, 34);
INSERT INTO unanswered VALUES (4, 1, 4000, 4, 'nobody spoke to us', 'c', 'alice', 'one too many', NULL);
INSERT INTO sqlite_sequence VALUES ('journal', 11);
INSERT INTO sqlite_sequence VALUES ('rewind', 2);
INSERT INTO sqlite_sequence VALUES ('approved', 2);
CREATE INDEX journal_unread ON journal (conversation, seq) WHERE state = 0;
CREATE INDEX journal_refused ON journal (state) WHERE state >= 5;
CREATE INDEX outbox_open ON outbox (address) WHERE open = 1;
CREATE INDEX outbox_preview ON outbox (session) WHERE stage = 0;
CREATE INDEX outbox_failed ON outbox (stage) WHERE stage >= 4;
CREATE INDEX outbox_untold ON outbox (address) WHERE stage >= 4 AND told = 0;
CREATE INDEX file_use_file ON file_use (file);
CREATE INDEX conversation_owner ON conversation (owner) WHERE owner IS NOT NULL;
CREATE INDEX life_conversation ON life (conversation);
CREATE INDEX session_restless ON session (restless) WHERE restless > 0;
CREATE INDEX entry_standing ON entry (life) WHERE rewound = 0;
CREATE INDEX entry_rewound ON entry (life) WHERE rewound > 0;
CREATE INDEX entry_summary ON entry (life) WHERE summary = 1 AND rewound = 0;
CREATE INDEX rewind_life ON rewind (life);
CREATE INDEX borrowed_life ON borrowed (life);
CREATE INDEX borrowed_source ON borrowed (source);
CREATE INDEX journal_taken ON journal (at) WHERE state = 1;
CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit
    BEGIN SELECT RAISE(ABORT, 'the record is only added to'); END;
CREATE TRIGGER audit_is_not_forgotten BEFORE DELETE ON audit
    BEGIN SELECT RAISE(ABORT, 'the record is only added to'); END;
COMMIT;
