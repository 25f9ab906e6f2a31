-- Two results may have one place: parts of messages that came in another format than their session's were numbered as
-- the session's format has them, and are numbered as they were appended since. A result is known by its ref alone.
CREATE INDEX results_place ON results (tenant_id, session_key, seq, part);
ALTER TABLE results DROP CONSTRAINT results_tenant_id_session_key_seq_part_key;
