-- A message that a caller has changed, or that stood behind one, is removed and superseded: it stays in the log, to the
-- byte, and out of every view. superseded_by is the seq of the message that has its client id now, or that of the
-- removal if none has. A client id names the message that had it last, also one that was removed since: an append that
-- is sent again must not bring it back.
ALTER TABLE messages ADD COLUMN superseded_by bigint;

CREATE UNIQUE INDEX messages_named ON messages (tenant_id, session_key, client_id)
    WHERE client_id IS NOT NULL AND (superseded_by IS NULL OR superseded_by = removed_seq);
DROP INDEX messages_client_id;
ALTER INDEX messages_named RENAME TO messages_client_id;
CREATE INDEX messages_superseded ON messages (tenant_id, session_key, client_id)
    WHERE client_id IS NOT NULL AND superseded_by > removed_seq;

ALTER POLICY as_appended ON messages
    WITH CHECK (seq > 0
                AND tokens >= 0
                AND shape <> E'\x1a'
                AND body IS NOT NULL
                AND bytes IS NULL
                AND (removed_at IS NULL) = (removed_seq IS NULL)
                AND (removed_seq > seq) IS NOT FALSE
                AND (superseded_by IS NULL OR (superseded_by >= removed_seq) IS TRUE)
                AND (view_body IS NULL) = (view_tokens IS NULL)
                AND (view_tokens >= 0) IS NOT FALSE);

CREATE TRIGGER messages_superseded_check
    BEFORE UPDATE OF superseded_by, removed_seq ON messages
    FOR EACH ROW WHEN (NEW.superseded_by IS NOT NULL AND (NEW.superseded_by >= NEW.removed_seq) IS NOT TRUE)
    EXECUTE FUNCTION refuse_row();
