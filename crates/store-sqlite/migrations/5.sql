-- Who was let in by pairing, and the record of that and of what else was changed.

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
CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit
    BEGIN SELECT RAISE(ABORT, 'the record is only added to'); END;
CREATE TRIGGER audit_is_not_forgotten BEFORE DELETE ON audit
    BEGIN SELECT RAISE(ABORT, 'the record is only added to'); END;
