-- A message that was removed stays in the log, to the byte, and out of every view. Its removal takes a seq of its own, so
-- that who appends with expected_seq, or knows a view by its ETag, does not miss it; no message ever has that seq.
ALTER TABLE messages
    ADD COLUMN removed_at  timestamptz,
    ADD COLUMN removed_seq bigint CHECK (removed_seq > seq),
    ADD CHECK ((removed_at IS NULL) = (removed_seq IS NULL));
