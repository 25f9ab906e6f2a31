ALTER TABLE messages
    DROP COLUMN removed_at,
    DROP COLUMN removed_seq;
