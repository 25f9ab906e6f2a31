-- What is due is written down where it becomes due, not searched for: an append or a change that takes a session over
-- its trigger writes a row here in its own transaction, and the end of the compaction takes it away. The sweep reads
-- these rows of all tenants, as workers read jobs, and asks again where the job was lost. They are ids only.
CREATE TABLE due_sessions (
    tenant_id   uuid        NOT NULL,
    session_key uuid        NOT NULL,
    level       smallint    NOT NULL,
    job_id      bigint      NOT NULL,
    since       timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, session_key)
);
CREATE INDEX due_sessions_since ON due_sessions (since);

-- What the sweep has to look after for a tenant: "policy" that another default makes sessions due, of which the cursor
-- says how far it has come, "recompaction" and "replay" that there may be a live one.
CREATE TABLE chores (
    tenant_id uuid        NOT NULL,
    kind      text        NOT NULL CHECK (kind IN ('policy', 'recompaction', 'replay')),
    cursor    uuid        NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    since     timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant_id, kind)
);

-- Where the slow rounds through everything are: "audit" through all sessions, for those that are due without a row,
-- "tenants" through all tenants, for what is to be pruned and packed.
CREATE TABLE rounds (
    kind        text        PRIMARY KEY,
    tenant      uuid        NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    session     uuid        NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    finished_at timestamptz
);
INSERT INTO rounds (kind) VALUES ('audit'), ('tenants');

-- Sessions that are due now have no row yet: all tenants are looked through, as after a change of their default.
INSERT INTO chores (tenant_id, kind)
SELECT t.id, k.kind
  FROM tenants t, (VALUES ('policy'), ('recompaction'), ('replay')) k (kind);

-- Jobs that a message from the future has put off for longer than any policy waits.
UPDATE river_job
   SET scheduled_at = now()
 WHERE kind = 'compact' AND state = 'scheduled' AND scheduled_at > now() + interval '30 days';
