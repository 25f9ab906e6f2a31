ALTER TABLE checkpoints
    DROP COLUMN walk;
