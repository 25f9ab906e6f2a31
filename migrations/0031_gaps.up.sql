-- gap_seq is the last seq that no message of a session's views has, 0 if there is none: a removal takes one, and an
-- import may leave some out. Where there is no gap after a checkpoint, a read knows the seqs of messages by counting.
-- This belongs to the release of 0030: a program of schema 30 would not note a gap.
ALTER TABLE sessions ADD COLUMN gap_seq bigint NOT NULL DEFAULT 0;

-- Row-level security is forced on the owner, too, who has no tenant here.
ALTER TABLE sessions NO FORCE ROW LEVEL SECURITY;
ALTER TABLE messages NO FORCE ROW LEVEL SECURITY;

UPDATE sessions s
   SET gap_seq = last_seq
 WHERE last_seq > (SELECT count(*)
                     FROM messages
                    WHERE tenant_id = s.tenant_id AND session_key = s.key AND removed_at IS NULL);

-- Of a message from before version 0.1.0 only the format is known, which begins a shape.
UPDATE messages
   SET shape = format::text
 WHERE shape IS NULL;

ALTER TABLE messages ALTER COLUMN shape SET NOT NULL;

ALTER TABLE sessions FORCE ROW LEVEL SECURITY;
ALTER TABLE messages FORCE ROW LEVEL SECURITY;
