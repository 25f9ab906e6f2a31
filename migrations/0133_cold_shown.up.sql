-- Sessions are counted in this index: the policy that hides archived and cold ones asks for both columns.
CREATE INDEX sessions_shown ON sessions (tenant_id, archived_at, cold_at);
DROP INDEX sessions_archived;
