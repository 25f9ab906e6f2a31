ALTER TABLE usage_sessions DROP COLUMN read_on;
ALTER TABLE usage_sessions SET (fillfactor = 70);
CREATE INDEX usage_sessions_unread ON usage_sessions (read_at, session_key);
