ALTER TABLE session_archives NO FORCE ROW LEVEL SECURITY;
DO $$
BEGIN
    IF EXISTS (SELECT FROM session_archives WHERE cold) THEN
        RAISE EXCEPTION 'there are cold sessions: read each of them, or erase them, first';
    END IF;
END
$$;
ALTER TABLE session_archives FORCE ROW LEVEL SECURITY;

ALTER TABLE usage_sessions
    DROP COLUMN away,
    DROP COLUMN thawed_at,
    DROP COLUMN back_at;
DROP INDEX session_archives_newest;
CREATE INDEX session_archives_newest ON session_archives (tenant_id, asked_at DESC, session_key DESC);
ALTER POLICY archived ON sessions
    USING (archived_at IS NULL OR current_setting('varve.archived', true) = 'on');
ALTER TABLE session_archives DROP COLUMN cold;
ALTER TABLE sessions DROP COLUMN cold_at;
