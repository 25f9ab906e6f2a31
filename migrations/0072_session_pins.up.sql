-- What callers pin of a session: every checkpoint has its text verbatim. ref names a message (m17), a part of one
-- (m17.2) or a result (r17.2-9f3a); part is -1 for a whole message. The log never changes, so the text is kept here: a
-- compaction does not read messages for it that have left the view long ago.
CREATE TABLE session_pins (
    tenant_id   uuid        NOT NULL,
    session_key uuid        NOT NULL,
    ref         text        NOT NULL CHECK (octet_length(ref) BETWEEN 2 AND 64),
    seq         bigint      NOT NULL CHECK (seq > 0),
    part        integer     NOT NULL CHECK (part >= -1),
    text        bytea       NOT NULL,
    tokens      integer     NOT NULL CHECK (tokens >= 0),
    note        text        NOT NULL DEFAULT '',
    created_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, session_key, ref),
    FOREIGN KEY (tenant_id, session_key) REFERENCES sessions (tenant_id, key)
);

ALTER TABLE session_pins ENABLE ROW LEVEL SECURITY;
ALTER TABLE session_pins FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON session_pins
    USING (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid);
