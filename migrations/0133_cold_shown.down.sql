CREATE INDEX sessions_archived ON sessions (tenant_id, archived_at);
DROP INDEX sessions_shown;
