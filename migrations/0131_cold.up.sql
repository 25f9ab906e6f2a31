-- A cold session sleeps: what was said in it lies in an archive, as that of an archived session does, but the session is
-- listed and counted as before, and comes back by itself when it is used. cold_at is when its archive was begun.
ALTER TABLE sessions ADD COLUMN cold_at timestamptz;
ALTER TABLE session_archives ADD COLUMN cold boolean NOT NULL DEFAULT false;

-- A statement that needs no more than the session's row may say that it means cold sessions, too.
ALTER POLICY archived ON sessions
    USING (archived_at IS NULL AND cold_at IS NULL
           OR current_setting('varve.archived', true) = 'on'
           OR archived_at IS NULL AND current_setting('varve.archived', true) = 'cold');

-- The list of archives has no cold sessions.
DROP INDEX session_archives_newest;
CREATE INDEX session_archives_newest ON session_archives (tenant_id, asked_at DESC, session_key DESC) WHERE NOT cold;

-- away says that what was said in a session lies in an archive, or is on its way there; thawed_at is when the last use
-- brought it back, and back_at when anything did. The ledger's row has them because it has the index of the sessions
-- that sleep: appends do not write to it.
ALTER TABLE usage_sessions
    ADD COLUMN away      boolean NOT NULL DEFAULT false,
    ADD COLUMN thawed_at timestamptz,
    ADD COLUMN back_at   timestamptz;

ALTER TABLE usage_sessions NO FORCE ROW LEVEL SECURITY;
ALTER TABLE session_archives NO FORCE ROW LEVEL SECURITY;
UPDATE usage_sessions u
   SET away = true
  FROM session_archives a
 WHERE a.tenant_id = u.tenant_id AND a.session_key = u.session_key;
ALTER TABLE usage_sessions FORCE ROW LEVEL SECURITY;
ALTER TABLE session_archives FORCE ROW LEVEL SECURITY;
