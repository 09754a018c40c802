-- What was spent in a day, by whom.

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
