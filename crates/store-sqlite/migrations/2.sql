-- Nobody has to be told any more that it was not delivered.
ALTER TABLE outbox ADD COLUMN told INTEGER NOT NULL DEFAULT 0;
CREATE INDEX outbox_untold ON outbox (address) WHERE stage >= 4 AND told = 0;

-- Which row names which file. holder: 0 a journal row, 1 a parcel, 2 an entry.
CREATE TABLE file_use (
    holder INTEGER NOT NULL,
    row INTEGER NOT NULL,
    file TEXT NOT NULL,
    PRIMARY KEY (holder, row, file)
) STRICT, WITHOUT ROWID;
CREATE INDEX file_use_file ON file_use (file);

INSERT OR IGNORE INTO file_use
    SELECT 0, j.seq, f.value ->> 'id' FROM journal j, json_each(j.inbound, '$.kind.said.files') f
    WHERE j.state <> 5;
INSERT OR IGNORE INTO file_use
    SELECT 1, o.id, f.value ->> 'id' FROM outbox o, json_each(o.act, '$.post.files') f;
INSERT OR IGNORE INTO file_use
    SELECT 2, e.position, f.value ->> 'id'
    FROM entry e, json_each(e.entry, '$.body') b, json_each(b.value, '$.files') f;

-- Rows that were not let in are those of nobody: one conversation per account at no chat. Who was
-- never let in leaves no conversation behind.
INSERT INTO address (account, kind, chat, thread)
    SELECT DISTINCT account, 'dm', '', '' FROM journal WHERE state >= 5 AND state = 5;
INSERT INTO conversation (address, member) SELECT id, '' FROM address WHERE chat = '';
UPDATE journal SET conversation =
    (SELECT c.id FROM address d JOIN conversation c ON c.address = d.id
     WHERE d.account = journal.account AND d.chat = '')
    WHERE state >= 5 AND state = 5;

-- For the time it takes to find what nothing names any more.
CREATE INDEX journal_conversation ON journal (conversation);
CREATE INDEX life_conversation ON life (conversation);
CREATE INDEX outbox_address ON outbox (address);
DELETE FROM conversation WHERE NOT EXISTS (SELECT 1 FROM session s WHERE s.conversation = conversation.id)
    AND NOT EXISTS (SELECT 1 FROM journal j WHERE j.conversation = conversation.id)
    AND NOT EXISTS (SELECT 1 FROM life l WHERE l.conversation = conversation.id)
    AND NOT EXISTS (SELECT 1 FROM entry e WHERE e.conversation = conversation.id);
DELETE FROM address WHERE NOT EXISTS (SELECT 1 FROM conversation c WHERE c.address = address.id)
    AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.address = address.id);
DROP INDEX journal_conversation;
DROP INDEX life_conversation;
DROP INDEX outbox_address;
