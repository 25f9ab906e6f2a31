-- :tenants tenants and :sessions sessions of theirs, of which the first tenant has most and 100 others have one that is
-- due, without a job. Triggers and foreign keys are off, and indexes are made at the end.
SET session_replication_role = replica;
SET synchronous_commit = off;
DROP INDEX sessions_newest, sessions_policy, sessions_offload;

INSERT INTO tenants (id, name)
SELECT lpad(to_hex(i), 32, '0')::uuid, 'tenant' || i FROM generate_series(1, :tenants) i;
INSERT INTO policies (tenant_id, id, trigger_ratio, hard_ratio, document)
SELECT id, '00000000-0000-0000-0000-000000000000', 0.8, 0.95, '{"trigger": 0.8}' FROM tenants;
INSERT INTO sessions (tenant_id, key, id, format, window_tokens, policy_id, last_seq, context_tokens, total_tokens)
SELECT lpad(to_hex(CASE WHEN i % 10 < 8 THEN 1 ELSE 1 + i % :tenants END), 32, '0')::uuid, lpad(to_hex(i), 32, '0')::uuid, 's' || i, 1,
       128000, '00000000-0000-0000-0000-000000000000', 20, 3000, 3000
  FROM generate_series(1, :sessions) i;
CREATE INDEX sessions_newest ON sessions (tenant_id, created_at DESC, key DESC);
CREATE INDEX sessions_policy ON sessions (tenant_id, policy_id);
CREATE INDEX sessions_offload ON sessions (tenant_id, key) WHERE checkpoint_n > offloaded_n;

INSERT INTO sessions (tenant_id, key, id, format, window_tokens, policy_id, last_seq, context_tokens, total_tokens,
                      armed_threshold)
SELECT lpad(to_hex(1 + i * (:tenants / 100 - 1)), 32, '0')::uuid, md5('due' || i)::uuid, 'due', 1, 128000,
       '00000000-0000-0000-0000-000000000000', 20, 110000, 110000, 2
  FROM generate_series(1, 100) i;
INSERT INTO due_sessions (tenant_id, session_key, level, job_id)
SELECT tenant_id, key, 1, 999 FROM sessions WHERE context_tokens = 110000;
ANALYZE;

-- The ledger has counted them all.
INSERT INTO usage_sessions (tenant_id, session_key, counted_seq, counted_n)
SELECT tenant_id, key, last_seq, checkpoint_n
  FROM sessions;

-- What is stored is indexed for the search.
INSERT INTO search_sessions (tenant_id, session_key, indexed_seq)
SELECT tenant_id, key, last_seq FROM sessions;
