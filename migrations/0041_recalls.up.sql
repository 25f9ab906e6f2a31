-- How often what a ref names was read back, by the checkpoint that had taken it out of the view when it was read (0: it
-- was in the view) and by the way. ref is that of the manifest's entry: messages of a range that left as a whole are one.
-- tokens is what the view gained by its leaving.
CREATE TABLE recalls (
    tenant_id     uuid        NOT NULL,
    session_key   uuid        NOT NULL,
    ref           text        NOT NULL,
    checkpoint_n  integer     NOT NULL,
    via           text        NOT NULL CHECK (via IN ('rest', 'mcp', 'tools')),
    tool          text        NOT NULL,
    action        text        NOT NULL,
    rule          text        NOT NULL,
    tokens        bigint      NOT NULL,
    reads         bigint      NOT NULL CHECK (reads > 0),
    first_read_at timestamptz NOT NULL,
    last_read_at  timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, session_key, ref, checkpoint_n, via),
    FOREIGN KEY (tenant_id, session_key) REFERENCES sessions (tenant_id, key)
);

-- For the report of what left in a time and was read back.
CREATE INDEX checkpoints_created ON checkpoints (tenant_id, created_at);

ALTER TABLE recalls ENABLE ROW LEVEL SECURITY;
ALTER TABLE recalls FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON recalls
    USING (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid);
