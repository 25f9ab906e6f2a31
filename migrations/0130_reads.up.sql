-- When a session was last read, as the ledger has noted it, to the hour; the epoch if it was not since this migration.
ALTER TABLE usage_sessions ADD COLUMN read_at timestamptz NOT NULL DEFAULT 'epoch';
CREATE INDEX usage_sessions_unread ON usage_sessions (read_at, session_key);
