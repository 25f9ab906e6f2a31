-- When a session's last append was, as the ledger has last seen it: sessions are listed in this order. An index on the
-- session's own column would make every append write to all indexes of the row; the ledger looks every few seconds.
ALTER TABLE usage_sessions ADD COLUMN appended_at timestamptz;
CREATE INDEX usage_sessions_appended ON usage_sessions (tenant_id, appended_at DESC, session_key DESC)
    WHERE appended_at IS NOT NULL;
