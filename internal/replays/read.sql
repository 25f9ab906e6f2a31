-- A replay's row with what became of its sessions, which is counted while it can change, and written down at the end.
SELECT r.id, r.state, r.filter, r.contenders, r.windows, r.sample, r.seed, r.max_messages, r.max_bytes,
       r.matched, r.too_short, r.total, r.contender, r.error, r.created_at, r.started_at, r.finished_at,
       (p.progress ->> 'measured')::bigint AS measured, (p.progress ->> 'failed')::bigint AS failed,
       (p.progress ->> 'outcomes')::bigint AS outcomes, p.progress -> 'skipped' AS skipped
  FROM replays r
 CROSS JOIN LATERAL (SELECT coalesce(r.progress, {progress}) AS progress OFFSET 0) p
 WHERE r.tenant_id = $1
