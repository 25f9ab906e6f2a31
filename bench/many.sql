-- Sessions $from to $to of $all of one tenant, as the API makes them: keys grow with the time, ids are the clients'. Each
-- has a message, which is indexed for the search, a pair of metadata, which ten share, and its row of the ledger; each
-- hundredth fails to be compacted.
INSERT INTO sessions (tenant_id, key, id, format, window_tokens, policy_id, metadata, last_seq, tail_bytes, context_tokens,
                      total_tokens, created_at, last_append_at)
SELECT '$tenant', ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, md5(n::text), 1, 10000000,
       '00000000-0000-0000-0000-000000000000', jsonb_build_object('user', (n / 10)::text), 1, 256, 64, 64,
       now() - ($all - n) * interval '1 s', now() - ($all - n) * interval '1 s'
  FROM generate_series($from, $to) n;

INSERT INTO session_metadata (tenant_id, session_key, pair, created_at)
SELECT '$tenant', ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, p.pair, now() - ($all - n) * interval '1 s'
  FROM generate_series($from, $to) n, metadata_pairs(jsonb_build_object('user', (n / 10)::text)) AS p (pair);

INSERT INTO messages (tenant_id, session_key, seq, role, format, tokens, starts_unit, shape, body)
SELECT '$tenant', ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 1, 'user', 1, 64, true, '1',
       convert_to('{"role":"user","content":"' || repeat(md5(n::text), 7) || '"}', 'UTF8')
  FROM generate_series($from, $to) n;

INSERT INTO usage_sessions (tenant_id, session_key, counted_seq, messages, bytes, tokens, appended_at, over_window, read_at)
SELECT '$tenant', ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 1, 1, 252, abs(hashint8(n)::bigint),
       now() - ($all - n) * interval '1 s', n % 10 = 0, now() - abs(hashint8(n)::bigint) % 10000 * interval '1 h'
  FROM generate_series($from, $to) n;

INSERT INTO session_failures (tenant_id, session_key, run_id, job_id, failures, error, since, next_try_at, quarantined_at)
SELECT '$tenant', ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, gen_random_uuid(), n, 1, 'failed',
       now() - n * interval '1 s', now() + interval '1 d', CASE WHEN n % 200 = 0 THEN now() END
  FROM generate_series($from, $to) n
 WHERE n % 100 = 0;

INSERT INTO search_sessions (tenant_id, session_key, indexed_seq)
SELECT '$tenant', ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 1
  FROM generate_series($from, $to) n;
