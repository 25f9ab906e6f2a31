ALTER TABLE usage_sessions DROP COLUMN appended_at;
