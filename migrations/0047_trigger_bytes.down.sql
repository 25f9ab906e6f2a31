ALTER TABLE policies
    DROP COLUMN trigger_bytes;
