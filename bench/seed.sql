-- 10,000 sessions of 100 other tenants, so that the planner sees tables as they are in use.
INSERT INTO tenants (id, name)
SELECT gen_random_uuid(), 'tenant ' || n
  FROM generate_series(1, 100) n;

INSERT INTO policies (tenant_id, id, trigger_ratio, hard_ratio, document)
SELECT t.id, '00000000-0000-0000-0000-000000000000', 0.8, 0.95, '$document'
  FROM tenants t
 WHERE t.name LIKE 'tenant %';

INSERT INTO sessions (tenant_id, key, id, format, window_tokens, policy_id, last_seq, context_tokens, total_tokens)
SELECT t.id, gen_random_uuid(), n::text, 1, 128000, '00000000-0000-0000-0000-000000000000', 4, 1000, 1000
  FROM tenants t, generate_series(1, 100) n
 WHERE t.name LIKE 'tenant %';

INSERT INTO messages (tenant_id, session_key, seq, role, format, tokens, starts_unit, shape, body)
SELECT s.tenant_id, s.key, n, 'user', 1, 250, true, '1', convert_to(repeat(md5(s.key::text || n), 32), 'UTF8')
  FROM sessions s, generate_series(1, 4) n;

INSERT INTO checkpoints (tenant_id, session_key, n, base_n, through_seq, tokens, body, body_size, units, manifest,
       policy, engine_version, run_id)
SELECT tenant_id, key, 1, 0, 2, 500, decode(md5(key::text), 'hex'), 16, '[]', '[]', '{}', 1, gen_random_uuid()
  FROM sessions;

UPDATE sessions
   SET checkpoint_n = 1, through_seq = 2, checkpoint_size = 16;

VACUUM ANALYZE sessions, messages, checkpoints, tenants, policies;

CHECKPOINT;
