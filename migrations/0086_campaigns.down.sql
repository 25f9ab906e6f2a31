DROP INDEX recompactions_campaign;

ALTER TABLE recompaction_sessions
    DROP COLUMN base_n,
    DROP COLUMN checkpoint_n,
    DROP COLUMN views_before,
    DROP COLUMN served_before,
    DROP COLUMN read_backs_before,
    DROP COLUMN rollback,
    DROP COLUMN reason;

ALTER TABLE recompactions
    DROP COLUMN campaign_id,
    DROP COLUMN per_minute,
    DROP COLUMN start_at,
    DROP COLUMN hours,
    DROP COLUMN next_start_at,
    DROP COLUMN paused_at,
    DROP COLUMN rollback_at,
    DROP COLUMN rolled_back_at,
    DROP COLUMN rolled_back,
    DROP COLUMN excepted;
