-- Where a tenant's events are sent. No types are all. failures counts rounds in a row in which nothing was delivered.
CREATE TABLE webhooks (
    tenant_id         uuid        NOT NULL REFERENCES tenants (id),
    id                uuid        NOT NULL,
    name              text        NOT NULL,
    url               text        NOT NULL CHECK (octet_length(url) BETWEEN 1 AND 2048),
    types             text[]      NOT NULL,
    created_at        timestamptz NOT NULL DEFAULT now(),
    disabled_at       timestamptz,
    disabled_reason   text,
    failures          integer     NOT NULL DEFAULT 0,
    failing_since     timestamptz,
    last_error        text,
    last_failed_at    timestamptz,
    last_delivered_at timestamptz,
    delivered         bigint      NOT NULL DEFAULT 0,
    dropped           bigint      NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, id)
);

CREATE INDEX webhooks_newest ON webhooks (tenant_id, created_at DESC, id DESC);

-- What signs. Two live during a rotation. Only workers may read them.
CREATE TABLE webhook_secrets (
    tenant_id  uuid        NOT NULL,
    webhook_id uuid        NOT NULL,
    id         uuid        NOT NULL,
    secret     bytea       NOT NULL CHECK (octet_length(secret) = 32),
    expires_at timestamptz,
    PRIMARY KEY (tenant_id, webhook_id, id),
    FOREIGN KEY (tenant_id, webhook_id) REFERENCES webhooks (tenant_id, id)
);

-- Events that a webhook still has to get. Of each topic, the first one is sent, and the others wait for it. A row whose
-- event is gone means nothing.
CREATE TABLE webhook_deliveries (
    tenant_id   uuid        NOT NULL,
    webhook_id  uuid        NOT NULL,
    n           bigint      NOT NULL,
    topic       text        NOT NULL,
    attempts    integer     NOT NULL DEFAULT 0,
    next_try_at timestamptz NOT NULL DEFAULT now(),
    error       text,
    PRIMARY KEY (tenant_id, webhook_id, n),
    FOREIGN KEY (tenant_id, webhook_id) REFERENCES webhooks (tenant_id, id)
);

CREATE INDEX webhook_deliveries_topic ON webhook_deliveries (tenant_id, topic);

-- Up to which event a webhook's deliveries are written down, and when it is to be looked at: not before resume_at, and
-- at retry_at without news. Workers see the rows of all tenants, see grants.sql; they have ids, numbers and times only.
CREATE TABLE webhook_turns (
    tenant_id  uuid        NOT NULL,
    webhook_id uuid        NOT NULL,
    enabled    boolean     NOT NULL DEFAULT true,
    through_n  bigint      NOT NULL,
    resume_at  timestamptz NOT NULL DEFAULT '-infinity',
    retry_at   timestamptz,
    taken_at   timestamptz,
    failing    boolean     NOT NULL DEFAULT false,
    PRIMARY KEY (tenant_id, webhook_id)
);

ALTER TABLE webhooks ENABLE ROW LEVEL SECURITY;
ALTER TABLE webhooks FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON webhooks
    USING (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid);

ALTER TABLE webhook_secrets ENABLE ROW LEVEL SECURITY;
ALTER TABLE webhook_secrets FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON webhook_secrets
    USING (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid);

ALTER TABLE webhook_deliveries ENABLE ROW LEVEL SECURITY;
ALTER TABLE webhook_deliveries FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON webhook_deliveries
    USING (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid);

ALTER TABLE webhook_turns ENABLE ROW LEVEL SECURITY;
ALTER TABLE webhook_turns FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON webhook_turns
    USING (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid);
