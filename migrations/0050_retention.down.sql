ALTER TABLE idempotency RESET (autovacuum_vacuum_scale_factor);
ALTER TABLE sessions RESET (autovacuum_vacuum_scale_factor, autovacuum_analyze_scale_factor);
ALTER TABLE messages RESET (
    autovacuum_vacuum_insert_scale_factor, autovacuum_vacuum_scale_factor, autovacuum_analyze_scale_factor
);
ALTER TABLE checkpoints
    ALTER COLUMN units SET COMPRESSION DEFAULT,
    ALTER COLUMN manifest SET COMPRESSION DEFAULT;
ALTER TABLE messages
    ALTER COLUMN body SET COMPRESSION DEFAULT,
    ALTER COLUMN view_body SET COMPRESSION DEFAULT;

-- A pruned checkpoint keeps the numbers of its units and open calls. Its units were a list once.
UPDATE checkpoints
   SET units = '[]'
 WHERE jsonb_typeof(units) = 'object';

ALTER TABLE sessions
    DROP COLUMN engine_version,
    DROP COLUMN policy_version;
