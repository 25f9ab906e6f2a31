-- What a session is a fork of: the id that the other session had, the seq through which they share their log, and the
-- checkpoint with which the fork began.
ALTER TABLE sessions ADD COLUMN forked_from text, ADD COLUMN forked_seq bigint, ADD COLUMN forked_checkpoint integer;
CREATE INDEX sessions_forked ON sessions (tenant_id, forked_from, created_at DESC, key DESC)
    WHERE forked_from IS NOT NULL;

-- A fork takes over messages whose bytes are in packs, with the packs.
ALTER POLICY as_appended ON messages
    WITH CHECK (seq > 0
                AND tokens >= 0
                AND (body IS NULL) = (shape = E'\x1a')
                AND (body IS NULL) = (bytes IS NOT NULL)
                AND (removed_at IS NULL) = (removed_seq IS NULL)
                AND (removed_seq > seq) IS NOT FALSE
                AND (superseded_by IS NULL OR (superseded_by >= removed_seq) IS TRUE)
                AND ((view_body IS NULL) = (view_tokens IS NULL) OR body IS NULL)
                AND (view_tokens >= 0) IS NOT FALSE);
