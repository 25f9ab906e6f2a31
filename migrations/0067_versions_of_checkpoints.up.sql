-- 0050 again: row-level security is forced on these tables, so that an owner that is no superuser updated no row.
-- Sessions from before 0050 were missing from the filters of recompactions and replays until their next compaction.
ALTER TABLE sessions NO FORCE ROW LEVEL SECURITY;
ALTER TABLE checkpoints NO FORCE ROW LEVEL SECURITY;
ALTER TABLE policy_versions NO FORCE ROW LEVEL SECURITY;

UPDATE sessions s
   SET engine_version = c.engine_version,
       policy_version = coalesce((SELECT max(v.version)
                                    FROM policy_versions v
                                   WHERE v.tenant_id = s.tenant_id
                                     AND v.session_key = '00000000-0000-0000-0000-000000000000'
                                     AND v.created_at <= c.created_at), 1)
  FROM checkpoints c
 WHERE c.tenant_id = s.tenant_id
   AND c.session_key = s.key
   AND c.n = s.checkpoint_n
   AND s.engine_version IS NULL;

ALTER TABLE sessions FORCE ROW LEVEL SECURITY;
ALTER TABLE checkpoints FORCE ROW LEVEL SECURITY;
ALTER TABLE policy_versions FORCE ROW LEVEL SECURITY;
