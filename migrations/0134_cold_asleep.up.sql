-- The sessions that may be frozen, those first that have slept the longest.
CREATE INDEX usage_sessions_asleep ON usage_sessions (tenant_id, greatest(appended_at, thawed_at)) WHERE NOT away;
