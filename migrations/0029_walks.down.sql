ALTER TABLE checkpoints
    DROP COLUMN walk;
ALTER TABLE messages
    DROP COLUMN fact;
