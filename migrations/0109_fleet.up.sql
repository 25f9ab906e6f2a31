-- Operators list the sessions of all tenants: by what the ledger has of them, and those that fail. An append writes none
-- of these indexes, the ledger and a failure do. over_window is as the ledger has last seen it.
ALTER TABLE usage_sessions ADD COLUMN over_window boolean NOT NULL DEFAULT false;

CREATE INDEX usage_sessions_tokens ON usage_sessions (tokens DESC, session_key DESC);
CREATE INDEX usage_sessions_bytes ON usage_sessions (bytes DESC, session_key DESC);
CREATE INDEX usage_sessions_idle ON usage_sessions (appended_at, session_key) WHERE appended_at IS NOT NULL;
CREATE INDEX usage_sessions_over ON usage_sessions (tokens DESC, session_key DESC) WHERE over_window;
CREATE INDEX session_failures_oldest ON session_failures (since, session_key);
CREATE INDEX session_failures_quarantined ON session_failures (quarantined_at, session_key)
    WHERE quarantined_at IS NOT NULL;

CREATE POLICY operators ON usage_sessions FOR SELECT TO varve_admin USING (true);
CREATE POLICY operators ON session_failures FOR SELECT TO varve_admin USING (true);
