-- The body of a result is cut into chunks, each compressed for itself, so that a range of its lines is read without the
-- rest. Bodies and chunks are rows here whatever holds the bytes: store is 0 for PostgreSQL (result_chunks.body), 1 for
-- a file system, 2 for an S3-compatible store (a part of the object result_chunks.object).
--
-- A body is complete once sha256 is set; until then it is being written, and writing is what a writer needs to go on.
-- touched_at is when a body was last written to. A body that nothing names is collected some time after that.
--
-- A result without a body lies in the log: its message has its bytes.
--
-- installation names this database to a store outside, which belongs to one database only, and has the numbers of those
-- that it has used.

-- Row-level security is forced on the owner, too, who has no tenant here.
ALTER TABLE result_bodies NO FORCE ROW LEVEL SECURITY;
ALTER TABLE results NO FORCE ROW LEVEL SECURITY;

ALTER TABLE result_bodies RENAME TO whole_bodies;
ALTER INDEX result_bodies_pkey RENAME TO whole_bodies_pkey;

CREATE TABLE installation (
    id     uuid       PRIMARY KEY DEFAULT gen_random_uuid(),
    stores smallint[] NOT NULL DEFAULT '{}'
);

INSERT INTO installation DEFAULT VALUES;

CREATE TABLE result_bodies (
    tenant_id   uuid        NOT NULL,
    session_key uuid        NOT NULL,
    id          uuid        NOT NULL,
    sha256      bytea       CHECK (octet_length(sha256) = 32),
    bytes       bigint      NOT NULL DEFAULT 0,
    lines       bigint      NOT NULL DEFAULT 0,
    store       smallint    NOT NULL DEFAULT 0 CHECK (store IN (0, 1, 2)),
    writing     bytea,
    touched_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, session_key, id),
    FOREIGN KEY (tenant_id, session_key) REFERENCES sessions (tenant_id, key)
);

-- at is the offset of a chunk's first byte in the body, line the number of the line that this byte belongs to, and
-- in_line says that the line began in an earlier chunk. digest is the SHA-256 of the chunk's bytes, decompressed. codec:
-- 0 as they are, 1 zstd. A chunk of an object begins at object_at and has object_size bytes there.
CREATE TABLE result_chunks (
    tenant_id   uuid     NOT NULL,
    session_key uuid     NOT NULL,
    body_id     uuid     NOT NULL,
    n           integer  NOT NULL CHECK (n >= 0),
    at          bigint   NOT NULL,
    line        bigint   NOT NULL,
    in_line     boolean  NOT NULL,
    size        integer  NOT NULL,
    codec       smallint NOT NULL,
    digest      bytea    NOT NULL CHECK (octet_length(digest) = 32),
    body        bytea,
    object      uuid,
    object_at   bigint,
    object_size integer,
    PRIMARY KEY (tenant_id, session_key, body_id, n),
    CHECK (body IS NULL OR object IS NULL),
    CHECK (body IS NOT NULL OR (object IS NOT NULL AND object_at IS NOT NULL AND object_size IS NOT NULL))
);

ALTER TABLE result_chunks
    ALTER COLUMN body SET STORAGE EXTERNAL;

INSERT INTO result_bodies (tenant_id, session_key, id, sha256, bytes, lines)
SELECT b.tenant_id, b.session_key, gen_random_uuid(), b.sha256, r.bytes, r.lines
  FROM whole_bodies b
  JOIN (SELECT tenant_id, session_key, sha256, max(bytes) AS bytes, max(lines) AS lines
          FROM results
         GROUP BY tenant_id, session_key, sha256) r
    ON r.tenant_id = b.tenant_id AND r.session_key = b.session_key AND r.sha256 = b.sha256;

-- The digest of a chunk that is a whole body is the body's.
INSERT INTO result_chunks (tenant_id, session_key, body_id, n, at, line, in_line, size, codec, digest, body)
SELECT b.tenant_id, b.session_key, b.id, 0, 0, 1, false, b.bytes, w.codec, b.sha256, w.body
  FROM result_bodies b
  JOIN whole_bodies w
    ON w.tenant_id = b.tenant_id AND w.session_key = b.session_key AND w.sha256 = b.sha256;

ALTER TABLE results
    DROP CONSTRAINT results_tenant_id_session_key_sha256_fkey,
    ADD COLUMN body_id uuid;

UPDATE results r
   SET body_id = b.id
  FROM result_bodies b
 WHERE b.tenant_id = r.tenant_id AND b.session_key = r.session_key AND b.sha256 = r.sha256;

SET CONSTRAINTS ALL IMMEDIATE;

DROP TABLE whole_bodies;

DROP INDEX results_body;

CREATE UNIQUE INDEX result_bodies_content ON result_bodies (tenant_id, session_key, sha256);

-- For the collection of what nothing names.
CREATE INDEX result_bodies_touched ON result_bodies (tenant_id, touched_at);

CREATE INDEX result_chunks_object ON result_chunks (tenant_id, object) WHERE object IS NOT NULL;

-- The foreign key below looks results up by their body whenever a body is deleted.
CREATE INDEX results_body ON results (tenant_id, session_key, body_id) WHERE body_id IS NOT NULL;

ALTER TABLE result_chunks
    ADD FOREIGN KEY (tenant_id, session_key, body_id) REFERENCES result_bodies (tenant_id, session_key, id)
    DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE results
    ADD FOREIGN KEY (tenant_id, session_key, body_id) REFERENCES result_bodies (tenant_id, session_key, id)
    DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE results FORCE ROW LEVEL SECURITY;

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['result_bodies', 'result_chunks']
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format($policy$CREATE POLICY tenant ON %I
            USING (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)
            WITH CHECK (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)$policy$, name);
    END LOOP;
END
$$;
