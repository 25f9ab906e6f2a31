-- The engine and the tenant's policy of a session's newest checkpoint, NULL without one, for the filters of
-- recompactions and replays: looked up in checkpoints, they cost 28 microseconds a session. No index has them, so that
-- an append's update stays on its page.
ALTER TABLE sessions
    ADD COLUMN engine_version integer,
    ADD COLUMN policy_version integer;

UPDATE sessions s
   SET engine_version = c.engine_version,
       policy_version = coalesce((SELECT max(v.version)
                                    FROM policy_versions v
                                   WHERE v.tenant_id = s.tenant_id
                                     AND v.session_key = '00000000-0000-0000-0000-000000000000'
                                     AND v.created_at <= c.created_at), 1)
  FROM checkpoints c
 WHERE c.tenant_id = s.tenant_id AND c.session_key = s.key AND c.n = s.checkpoint_n;

-- Bodies are compressed with lz4 from now on, where the server was built with it: it takes a fifth of the time of pglz
-- for the same size. What is stored stays as it is.
DO $$
BEGIN
    ALTER TABLE messages
        ALTER COLUMN body SET COMPRESSION lz4,
        ALTER COLUMN view_body SET COMPRESSION lz4;
    ALTER TABLE checkpoints
        ALTER COLUMN units SET COMPRESSION lz4,
        ALTER COLUMN manifest SET COMPRESSION lz4;
EXCEPTION
    WHEN feature_not_supported THEN NULL;
END
$$;

-- The defaults wait for a fifth of a table. Of 10^9 messages that is 2 * 10^8 rows that vacuum has not seen: index-only
-- scans look into the table for each, statistics are of a time long past, and one vacuum then takes hours. The rows of
-- sessions are updated all the time and should not leave their pages.
ALTER TABLE messages SET (
    autovacuum_vacuum_insert_scale_factor = 0.02,
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.02
);
ALTER TABLE sessions SET (
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.05
);
ALTER TABLE idempotency SET (
    autovacuum_vacuum_scale_factor = 0.05
);
