ALTER TABLE usage_sessions DROP COLUMN read_at;
