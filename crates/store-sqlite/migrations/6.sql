-- What people approved for good.

CREATE TABLE approved (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    digest TEXT NOT NULL UNIQUE,
    approved TEXT NOT NULL
) STRICT;
