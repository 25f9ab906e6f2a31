DROP POLICY operators ON session_failures;
DROP POLICY operators ON usage_sessions;
DROP INDEX session_failures_quarantined;
DROP INDEX session_failures_oldest;
DROP INDEX usage_sessions_over;
DROP INDEX usage_sessions_idle;
DROP INDEX usage_sessions_bytes;
DROP INDEX usage_sessions_tokens;
ALTER TABLE usage_sessions DROP COLUMN over_window;
