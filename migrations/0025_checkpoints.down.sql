ALTER TABLE sessions
    DROP COLUMN window_source;

ALTER TABLE checkpoints
    DROP COLUMN restored_from;
