-- A tenant as large as lists may get, beside small ones: :n sessions, a tenth of them with policies of their own, and
-- one session, recompaction and import whose lists have up to :n rows. Keys and times are in no order, which is the
-- worst for an index: half of it is what an import of an archive makes. Triggers and foreign keys are off.
SET session_replication_role = replica;

INSERT INTO tenants (id, name) VALUES (:tenant, 'large');
INSERT INTO tenants (id, name) SELECT md5('tenant' || i)::uuid, 'small' || i FROM generate_series(1, 1000) i;

INSERT INTO policies (tenant_id, id, trigger_ratio, hard_ratio, document)
SELECT id, '00000000-0000-0000-0000-000000000000', 0.8, 0.95, '{"trigger": 0.8}' FROM tenants;
INSERT INTO policies (tenant_id, id, trigger_ratio, hard_ratio, document, patch, session_version)
SELECT :tenant, md5('policy' || i)::uuid, 0.8, 0.95,
       json_build_object('trigger', 0.8, 'note', repeat(md5(i::text), 20)), '{"trigger": 0.8}', 1
  FROM generate_series(1, :n / 10) i;

INSERT INTO sessions (tenant_id, key, id, format, window_tokens, policy_id, metadata, last_seq, context_tokens,
                      total_tokens, checkpoint_n, through_seq, offloaded_n, engine_version, policy_version,
                      created_at)
SELECT :tenant, md5('session' || i)::uuid, 's' || i, 1, 128000,
       CASE WHEN i % 10 = 0 THEN md5('policy' || i / 10)::uuid ELSE '00000000-0000-0000-0000-000000000000' END,
       jsonb_build_object('user', (i % (:n / 40))::text, 'all', 'x', 'most', (i % 4)::text), 20, i % 5000, i % 9000, i % 3, 0, i % 3, nullif(i % 3, 0), nullif(i % 3, 0),
       timestamptz '2026-01-01' + (abs(hashint4(i)) % 1000000) * interval '1 s'
  FROM generate_series(1, :n) i;
INSERT INTO sessions (tenant_id, key, id, format, window_tokens, policy_id)
SELECT id, md5(name)::uuid, 'chat', 1, 128000, '00000000-0000-0000-0000-000000000000' FROM tenants WHERE name <> 'large';
INSERT INTO sessions (tenant_id, key, id, format, window_tokens, policy_id, last_seq, checkpoint_n, through_seq,
                      offloaded_n, created_at)
VALUES (:tenant, :long, 'long', 1, 128000, '00000000-0000-0000-0000-000000000000', :n, :n / 2, :n - 10, :n / 2,
        '2027-01-01');
INSERT INTO session_metadata (tenant_id, session_key, pair, created_at)
SELECT tenant_id, key, p.pair, created_at FROM sessions, metadata_pairs(metadata) AS p (pair) WHERE tenant_id = :tenant;
INSERT INTO usage_sessions (tenant_id, session_key, appended_at)
SELECT tenant_id, key, created_at FROM sessions WHERE tenant_id = :tenant;

INSERT INTO checkpoints (tenant_id, session_key, n, base_n, through_seq, tokens, body_size, units, manifest, policy,
                         engine_version, run_id, created_at)
SELECT :tenant, :long, i, i - 1, 2 * i - 10, 100, 0, '[]', '[]', '{"trigger": 0.8}', 3, md5('run' || i)::uuid,
       timestamptz '2026-01-01' + i * interval '1 min'
  FROM generate_series(1, :n / 2) i;
INSERT INTO checkpoints (tenant_id, session_key, n, base_n, through_seq, tokens, body_size, units, manifest, policy,
                         engine_version, run_id, created_at)
SELECT tenant_id, key, i, i - 1, 10, 100, 0, '[]', '[]', '{"trigger": 0.8}', 3 - (last_seq + i) % 2,
       md5('run' || id || i)::uuid, created_at
  FROM sessions, generate_series(1, 2) i
 WHERE i <= checkpoint_n AND id <> 'long';
INSERT INTO runs (tenant_id, id, session_key, cause, state, job_id, checkpoint_n, tokens_before, tokens_after,
                  triggered_at, started_at, finished_at)
SELECT :tenant, md5('run' || i)::uuid, CASE WHEN i % 2 = 0 THEN :long::uuid ELSE md5('session' || i)::uuid END,
       'threshold', 'done', i, i / 2, 900, 300, t, t, t
  FROM generate_series(1, :n) i, LATERAL (SELECT timestamptz '2026-01-01' + (abs(hashint4(i)) % 1000000) * interval '1 s') x (t);
INSERT INTO results (tenant_id, session_key, ref, seq, part, tool_name, call_id, category, media_type, bytes, lines,
                     tokens, sha256)
SELECT :tenant, :long, 'r' || i || '.0-aaaa', i, 0,
       CASE WHEN i % 200 = 0 THEN 'rare' WHEN i % 2 = 0 THEN 'Read' ELSE 'tool ' || i % 10 END,
       'c' || i, CASE WHEN i % 200 = 100 THEN 'shell' WHEN i % 10 = 9 THEN 'search' ELSE 'file' END,
       'text/plain', 100, 10, 30, sha256('x')
  FROM generate_series(1, :n / 2) i;
INSERT INTO messages (tenant_id, session_key, seq, role, format, tokens, starts_unit, body, shape, digest, item_id)
SELECT :tenant, :long, i, CASE WHEN i % 2 = 1 THEN 'user' ELSE 'assistant' END, 1, 30, true, body, 'x', sha256(body),
       CASE WHEN i % 10 = 0 THEN 'rs_' || md5(i::text) END
  FROM generate_series(1, :n) i,
       LATERAL (SELECT convert_to('{"role":"user","content":"' || repeat(md5(i::text), 4) || '"}', 'UTF8')) b (body);
INSERT INTO messages (tenant_id, session_key, seq, role, format, tokens, starts_unit, body, shape)
SELECT s.tenant_id, s.key, i, CASE WHEN i % 2 = 1 THEN 'user' ELSE 'assistant' END, 1, 150, true,
       convert_to('{"role":"user","content":"' || repeat(md5(s.id || i), 15) || '"}', 'UTF8'), 'x'
  FROM sessions s, generate_series(1, :messages) i
 WHERE s.tenant_id = :tenant AND s.id <> 'long';
INSERT INTO policy_versions (tenant_id, session_key, version, tenant_version, patch, document)
SELECT :tenant, k::uuid, i, i, '{}', '{"trigger": 0.8}'
  FROM generate_series(1, :n / 10) i, unnest(ARRAY['00000000-0000-0000-0000-000000000000', :long]) k;
INSERT INTO api_keys (tenant_id, id, digest, last4)
SELECT :tenant, md5('key' || i)::uuid, sha256(('key' || i)::bytea), 'abcd' FROM generate_series(1, 50) i;
INSERT INTO session_tokens (tenant_id, session_key, id, digest, last4, scopes, made_by, created_at, expires_at)
SELECT :tenant, :long, md5('token' || i)::uuid, sha256(('token' || i)::bytea), 'abcd', '{read}', md5('key1')::uuid,
       t, t + interval '1 h'
  FROM generate_series(1, :n / 10) i, LATERAL (SELECT timestamptz '2026-01-01' + (abs(hashint4(i)) % 1000000) * interval '1 s') x (t);

INSERT INTO recompactions (tenant_id, id, state, filter, max_running, created_at, finished_at)
SELECT :tenant, md5('recompaction' || i)::uuid, 'done', '{}', 4, t, t
  FROM generate_series(1, :n / 10) i, LATERAL (SELECT timestamptz '2026-01-01' + (abs(hashint4(i)) % 1000000) * interval '1 s') x (t);
INSERT INTO recompaction_sessions (tenant_id, recompaction_id, session_key, state, error, finished_at)
SELECT :tenant, md5('recompaction1')::uuid, md5('session' || i)::uuid, CASE WHEN i % 100 = 0 THEN 'failed' ELSE 'changed' END,
       CASE WHEN i % 100 = 0 THEN 'x' END, now()
  FROM generate_series(1, :n) i;
INSERT INTO replays (tenant_id, id, state, filter, contenders, windows, sample, seed, max_messages, max_bytes, total,
                     progress, created_at, finished_at)
SELECT :tenant, md5('replay' || i)::uuid, CASE WHEN i = 1 THEN 'running' ELSE 'done' END, '{}', '[]', '{}', 1000, 1, 1, 1,
       1000, CASE WHEN i > 1 THEN jsonb_build_object('measured', 7, 'failed', 0, 'outcomes', 7, 'skipped', '[]'::jsonb) END, t,
       CASE WHEN i > 1 THEN t END
  FROM generate_series(1, :n / 10) i, LATERAL (SELECT timestamptz '2026-12-31' - i * interval '1 min') x (t);
INSERT INTO replay_sessions (tenant_id, replay_id, session_key, place, last_seq, window_tokens, state, finished_at)
SELECT :tenant, md5('replay' || r)::uuid, md5('session' || i)::uuid, i, 20, 128000, 'measured', now()
  FROM generate_series(1, 10) r, generate_series(1, 1000) i;
INSERT INTO replay_outcomes (tenant_id, replay_id, session_key, contender, window_tokens, outcome)
SELECT tenant_id, replay_id, session_key, 0, 128000, '{}' FROM replay_sessions;
INSERT INTO imports (tenant_id, id, state, created_at, updated_at, finished_at)
SELECT :tenant, md5('import' || i)::uuid, 'succeeded', t, t, t
  FROM generate_series(1, :n / 10) i, LATERAL (SELECT timestamptz '2026-01-01' + (abs(hashint4(i)) % 1000000) * interval '1 s') x (t);
INSERT INTO import_lines (tenant_id, import_id, n, lines, line, outcome, session_key, seq)
SELECT :tenant, md5('import1')::uuid, i, 1, i, CASE WHEN i % 500 = 0 THEN 'rejected' ELSE 'stored' END,
       md5('session' || i)::uuid, i
  FROM generate_series(1, :n) i;
INSERT INTO idempotency (tenant_id, route, key, session_key, digest, answer, created_at)
SELECT :tenant, 'append', 'k' || i, md5('session' || i)::uuid, sha256('x'), '{}', now() - (abs(hashint4(i)) % 500000) * interval '1 s'
  FROM generate_series(1, :n) i;
INSERT INTO findings (tenant_id, session_key, n, kind, finding, found_at)
SELECT :tenant, md5('session' || i)::uuid, 1, 'counters', '{}', now() - i * interval '1 s' FROM generate_series(1, :n / 10) i;
INSERT INTO session_failures (tenant_id, session_key, run_id, job_id, failures, error, since, next_try_at)
SELECT :tenant, md5('session' || i)::uuid, md5('run' || i)::uuid, i, 1, 'x', t, t
  FROM generate_series(1, :n / 10) i, LATERAL (SELECT timestamptz '2026-01-01' + (abs(hashint4(i)) % 1000000) * interval '1 s') x (t);
