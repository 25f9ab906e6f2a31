-- An upload is the body of a result that arrives in one or several requests before its message exists. While it arrives
-- its body is one that is being written (result_bodies.writing), whose bytes are those that are kept; once it has come in
-- whole, it is a row of results, too. n is its number in its session. Of a finished upload, shown is the text that
-- stands for it in a message, and mark the line of it that names the result: it is how that message is recognised.
--
-- An uploaded result is part of no message: its seq is 0, and part is the upload's number.
CREATE TABLE uploads (
    tenant_id   uuid        NOT NULL,
    session_key uuid        NOT NULL,
    id          uuid        NOT NULL,
    n           integer     NOT NULL CHECK (n > 0),
    body_id     uuid        NOT NULL,
    key         text,
    tool        text        NOT NULL,
    call_id     text        NOT NULL,
    media_type  text        NOT NULL,
    expected    bytea       CHECK (octet_length(expected) = 32),
    ref         text,
    shown       bytea,
    mark        text        NOT NULL DEFAULT '',
    created_at  timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    PRIMARY KEY (tenant_id, session_key, id),
    FOREIGN KEY (tenant_id, session_key) REFERENCES sessions (tenant_id, key),
    FOREIGN KEY (tenant_id, session_key, body_id) REFERENCES result_bodies (tenant_id, session_key, id)
        DEFERRABLE INITIALLY DEFERRED,
    CHECK ((ref IS NULL) = (finished_at IS NULL)),
    CHECK ((shown IS NULL) = (finished_at IS NULL))
);

CREATE UNIQUE INDEX uploads_n ON uploads (tenant_id, session_key, n);
CREATE UNIQUE INDEX uploads_key ON uploads (tenant_id, session_key, key) WHERE key IS NOT NULL;

-- The foreign key looks uploads up by their body whenever a body is deleted.
CREATE INDEX uploads_body ON uploads (tenant_id, session_key, body_id);

-- For the end of those that were given up.
CREATE INDEX uploads_unfinished ON uploads (tenant_id, created_at) WHERE finished_at IS NULL;

ALTER TABLE uploads ENABLE ROW LEVEL SECURITY;
ALTER TABLE uploads FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON uploads
    USING (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid);

ALTER TABLE results
    ADD CONSTRAINT results_seq_check CHECK (seq >= 0 AND (seq = 0) = (ref LIKE 'u%'));
