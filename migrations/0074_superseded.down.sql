-- An id that several messages have had stays with the newest.
ALTER TABLE messages NO FORCE ROW LEVEL SECURITY;
UPDATE messages
   SET client_id = NULL
 WHERE superseded_by > removed_seq;
ALTER TABLE messages FORCE ROW LEVEL SECURITY;

DROP TRIGGER messages_superseded_check ON messages;
ALTER POLICY as_appended ON messages
    WITH CHECK (seq > 0
                AND tokens >= 0
                AND shape <> E'\x1a'
                AND body IS NOT NULL
                AND bytes IS NULL
                AND (removed_at IS NULL) = (removed_seq IS NULL)
                AND (removed_seq > seq) IS NOT FALSE
                AND (view_body IS NULL) = (view_tokens IS NULL)
                AND (view_tokens >= 0) IS NOT FALSE);
DROP INDEX messages_superseded;
DROP INDEX messages_client_id;
CREATE UNIQUE INDEX messages_client_id ON messages (tenant_id, session_key, client_id) WHERE client_id IS NOT NULL;
ALTER TABLE messages DROP COLUMN superseded_by;
