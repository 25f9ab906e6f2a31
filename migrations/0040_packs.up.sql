-- Old messages move into packs: rows of up to about 512 KiB of messages, compressed together, in which results that are
-- stored elsewhere have left holes (package pack). The row of such a message keeps what is asked for without its bytes;
-- body, view_body, digest, calls and answers are NULL, and shape is the one character 26, so that a view which meets
-- one is noticed. bytes is the size of a body that is in a pack.
--
-- raw is the size of a pack's messages, results how many stored results they had when the pack was made: when there are
-- more, it is made again. offloaded_n is the checkpoint after which nothing was left to pack.
CREATE TABLE message_packs (
    tenant_id   uuid    NOT NULL,
    session_key uuid    NOT NULL,
    first_seq   bigint  NOT NULL CHECK (first_seq > 0),
    last_seq    bigint  NOT NULL,
    raw         bigint  NOT NULL,
    results     integer NOT NULL,
    digest      bytea   NOT NULL CHECK (octet_length(digest) = 32),
    body        bytea   NOT NULL,
    PRIMARY KEY (tenant_id, session_key, first_seq),
    FOREIGN KEY (tenant_id, session_key) REFERENCES sessions (tenant_id, key),
    CHECK (last_seq >= first_seq)
);

ALTER TABLE message_packs
    ALTER COLUMN body SET STORAGE EXTERNAL,
    ENABLE ROW LEVEL SECURITY,
    FORCE ROW LEVEL SECURITY;

CREATE POLICY tenant ON message_packs
    USING (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid);

ALTER TABLE messages
    ADD COLUMN bytes integer,
    ALTER COLUMN body DROP NOT NULL,
    ALTER COLUMN calls DROP NOT NULL,
    ALTER COLUMN answers DROP NOT NULL,
    DROP CONSTRAINT messages_check,
    ADD CONSTRAINT messages_view_check CHECK ((view_body IS NULL) = (view_tokens IS NULL) OR body IS NULL),
    ADD CONSTRAINT messages_packed_check CHECK ((body IS NULL) = (shape = E'\x1a') AND (body IS NULL) = (bytes IS NOT NULL));

ALTER TABLE sessions
    ADD COLUMN offloaded_n integer NOT NULL DEFAULT 0;

CREATE INDEX sessions_offload ON sessions (tenant_id, key) WHERE checkpoint_n > offloaded_n;

-- One index serves both foreign keys: results are looked for by the whole of it, checkpoints by session, which matters
-- only when a session is erased.
ALTER TABLE checkpoint_results
    DROP CONSTRAINT checkpoint_results_pkey,
    ADD PRIMARY KEY (tenant_id, session_key, ref, n);

DROP INDEX checkpoint_results_ref;

-- The serving role may take a message's bytes out of its row, and never put any in: those are written once.
CREATE FUNCTION refuse_new_body() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the bytes of a message are written once';
END
$$;

CREATE TRIGGER messages_body
    BEFORE UPDATE OF body, view_body, bytes ON messages
    FOR EACH ROW
    WHEN (current_user = 'varve_app' AND NEW.body IS NOT NULL)
    EXECUTE FUNCTION refuse_new_body();
