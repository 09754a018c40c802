-- When a parcel was delivered or given up. Of those that ended before, nobody knows.

ALTER TABLE outbox ADD COLUMN settled INTEGER;
