-- How many messages that showed it are not there any more.
ALTER TABLE outbox ADD COLUMN anew INTEGER NOT NULL DEFAULT 0;
