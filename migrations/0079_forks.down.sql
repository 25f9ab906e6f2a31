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
DROP INDEX sessions_forked;
ALTER TABLE sessions DROP COLUMN forked_from, DROP COLUMN forked_seq, DROP COLUMN forked_checkpoint;
