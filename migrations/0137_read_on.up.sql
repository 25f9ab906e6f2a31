-- The list of sessions that were not read for the longest time is in the order of days. With an index on the time itself,
-- each read that is noted would write to every index of the row; a day changes once a day.
DROP INDEX usage_sessions_unread;
ALTER TABLE usage_sessions SET (fillfactor = 85);
ALTER TABLE usage_sessions
    ADD COLUMN read_on date NOT NULL GENERATED ALWAYS AS ((read_at AT TIME ZONE 'UTC')::date) STORED;
CREATE INDEX usage_sessions_unread ON usage_sessions (read_on, session_key);
