-- What happened to a tenant's sessions and campaigns, for those who follow it: written by the transaction that did it.
-- n is its place among the events of its tenant, given at the commit. topic is what the events of which are told in
-- order: session/ID, recompaction/ID, budget, webhook/ID. An event with a text in once is written once.
CREATE TABLE events (
    tenant_id uuid        NOT NULL,
    id        uuid        NOT NULL,
    n         bigint      CHECK (n > 0),
    at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    type      text        NOT NULL CHECK (octet_length(type) BETWEEN 1 AND 64),
    topic     text        NOT NULL CHECK (octet_length(topic) BETWEEN 1 AND 1024),
    data      json        NOT NULL,
    once      text,
    PRIMARY KEY (tenant_id, id)
);

CREATE UNIQUE INDEX events_n ON events (tenant_id, n);
CREATE INDEX events_topic ON events (tenant_id, topic, n);
CREATE UNIQUE INDEX events_once ON events (tenant_id, once) WHERE once IS NOT NULL;

-- The number of each tenant's newest event. Workers see the rows of all tenants, see grants.sql; they have ids and
-- numbers only.
CREATE TABLE event_heads (
    tenant_id uuid   PRIMARY KEY,
    n         bigint NOT NULL
) WITH (fillfactor = 50);

ALTER TABLE events ENABLE ROW LEVEL SECURITY;
ALTER TABLE events FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON events
    USING (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid);

ALTER TABLE event_heads ENABLE ROW LEVEL SECURITY;
ALTER TABLE event_heads FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON event_heads
    USING (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid);

-- Events are numbered when their transaction commits, under the lock of the tenant's head: numbers become visible in
-- their order, so that who has read up to a number has missed nothing before it. A transaction that takes long holds
-- nobody up before its commit. What is restored has its number already.
CREATE FUNCTION event_number() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, public AS $$
DECLARE
    place bigint;
BEGIN
    INSERT INTO public.event_heads AS h (tenant_id, n)
    VALUES (NEW.tenant_id, 1)
    ON CONFLICT (tenant_id) DO UPDATE
       SET n = h.n + 1
    RETURNING h.n INTO place;
    UPDATE public.events
       SET n = place
     WHERE tenant_id = NEW.tenant_id AND id = NEW.id;
    RETURN NULL;
END
$$;

CREATE CONSTRAINT TRIGGER events_number AFTER INSERT ON events
    DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.n IS NULL) EXECUTE FUNCTION event_number();
