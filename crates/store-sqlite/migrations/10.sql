-- What sessions have taken and no turn has: how much that is, and since when, is asked all the time.
CREATE INDEX journal_taken ON journal (at) WHERE state = 1;
