ALTER TABLE session_archives NO FORCE ROW LEVEL SECURITY;
DO $$
BEGIN
    IF EXISTS (SELECT FROM session_archives) THEN
        RAISE EXCEPTION 'there are archived sessions: restore or erase them first';
    END IF;
END
$$;

DROP TRIGGER erasures_archived ON erasures;
DROP FUNCTION refuse_archived();
ALTER TABLE chores NO FORCE ROW LEVEL SECURITY;
DELETE FROM chores WHERE kind = 'archive';
ALTER TABLE chores FORCE ROW LEVEL SECURITY;
ALTER TABLE session_retention
    DROP COLUMN archives,
    DROP COLUMN archive_idle_seconds,
    DROP COLUMN archive_age_seconds,
    DROP COLUMN archive_kept_seconds;
ALTER TABLE retention
    DROP COLUMN archives,
    DROP COLUMN archive_idle_seconds,
    DROP COLUMN archive_age_seconds,
    DROP COLUMN archive_kept_seconds;
DROP TABLE archive_parts;
DROP TABLE session_archives;
DROP POLICY archived ON sessions;
ALTER TABLE sessions
    DROP COLUMN archived_at,
    DROP COLUMN restored_at;
