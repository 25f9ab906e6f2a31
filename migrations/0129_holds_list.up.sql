-- A tenant's legal holds are listed, the newest first.
CREATE INDEX session_holds_newest ON session_holds (tenant_id, placed_at DESC, session_key DESC);
