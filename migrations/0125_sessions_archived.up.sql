-- Sessions are counted in this index: the policy that hides archived ones asks for archived_at.
CREATE INDEX sessions_archived ON sessions (tenant_id, archived_at);
