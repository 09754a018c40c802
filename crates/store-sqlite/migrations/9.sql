-- What was not answered and is one too many of its day to be in the journal, without what was said.

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
