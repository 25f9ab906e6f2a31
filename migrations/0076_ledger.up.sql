-- What was stored, served and compacted, by tenant and day, and by session. messages, bytes and tokens are of what was
-- appended, also of what was removed since; compactions are checkpoints, restored ones included. A session's row says up
-- to which seq and checkpoint it is counted: what is behind that is counted later, and only once.
CREATE TABLE usage_days (
    tenant_id     uuid   NOT NULL REFERENCES tenants (id),
    day           date   NOT NULL,
    messages      bigint NOT NULL DEFAULT 0,
    bytes         bigint NOT NULL DEFAULT 0,
    tokens        bigint NOT NULL DEFAULT 0,
    views         bigint NOT NULL DEFAULT 0,
    tokens_served bigint NOT NULL DEFAULT 0,
    tokens_saved  bigint NOT NULL DEFAULT 0,
    read_backs    bigint NOT NULL DEFAULT 0,
    compactions   bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, day)
);

CREATE TABLE usage_sessions (
    tenant_id     uuid    NOT NULL,
    session_key   uuid    NOT NULL,
    counted_seq   bigint  NOT NULL DEFAULT 0,
    counted_n     integer NOT NULL DEFAULT 0,
    messages      bigint  NOT NULL DEFAULT 0,
    bytes         bigint  NOT NULL DEFAULT 0,
    tokens        bigint  NOT NULL DEFAULT 0,
    views         bigint  NOT NULL DEFAULT 0,
    tokens_served bigint  NOT NULL DEFAULT 0,
    tokens_saved  bigint  NOT NULL DEFAULT 0,
    read_backs    bigint  NOT NULL DEFAULT 0,
    compactions   bigint  NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, session_key),
    FOREIGN KEY (tenant_id, session_key) REFERENCES sessions (tenant_id, key)
) WITH (fillfactor = 70);

ALTER TABLE usage_days ENABLE ROW LEVEL SECURITY;
ALTER TABLE usage_days FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON usage_days
    USING (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid);

ALTER TABLE usage_sessions ENABLE ROW LEVEL SECURITY;
ALTER TABLE usage_sessions FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON usage_sessions
    USING (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid);
