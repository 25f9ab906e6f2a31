-- Who did what: a row for each administrative or destructive action, written by the transaction that did it, in a chain
-- for each tenant. The chain of the nil tenant has what operators do to tenants. The trigger gives a row its place, its
-- time, its login and its hash, under the lock of the chain's head, so that a role that serves can write the next row and
-- no other.
CREATE TABLE audit_trail (
    tenant_id uuid        NOT NULL,
    n         bigint      NOT NULL CHECK (n > 0),
    at        timestamptz NOT NULL,
    login     text        NOT NULL,
    actor     text        NOT NULL CHECK (octet_length(actor) BETWEEN 1 AND 64),
    actor_id  uuid,
    request   text        CHECK (octet_length(request) <= 255),
    address   text        CHECK (octet_length(address) <= 255),
    action    text        NOT NULL CHECK (octet_length(action) BETWEEN 1 AND 64),
    object    text        NOT NULL CHECK (octet_length(object) BETWEEN 1 AND 64),
    object_id text        CHECK (octet_length(object_id) <= 1024),
    detail    json,
    before    json,
    after     json,
    previous  bytea       NOT NULL,
    hash      bytea       NOT NULL,
    PRIMARY KEY (tenant_id, n)
);

CREATE INDEX audit_trail_at ON audit_trail (tenant_id, at, n);
CREATE INDEX audit_trail_action ON audit_trail (tenant_id, action, n);
CREATE INDEX audit_trail_actor ON audit_trail (tenant_id, actor_id, n);
CREATE INDEX audit_trail_object ON audit_trail (tenant_id, object_id, n);

-- The last row of each chain: it shows whether rows are missing at the end.
CREATE TABLE audit_heads (
    tenant_id uuid        PRIMARY KEY,
    n         bigint      NOT NULL,
    at        timestamptz NOT NULL,
    hash      bytea       NOT NULL
);

ALTER TABLE audit_trail ENABLE ROW LEVEL SECURITY;
ALTER TABLE audit_trail FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON audit_trail
    USING (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid);

ALTER TABLE audit_heads ENABLE ROW LEVEL SECURITY;
ALTER TABLE audit_heads FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON audit_heads
    USING (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid);

-- The hash of a row: SHA-256 of the hash before it and every other column as text, each behind its length in 4 bytes, -1
-- for NULL. audit.Entry.Sum in Go computes the same.
CREATE FUNCTION audit_hash(t audit_trail) RETURNS bytea LANGUAGE plpgsql IMMUTABLE
    SET search_path = pg_catalog, public AS $$
DECLARE
    field text;
    bytes bytea;
    sum   bytea := t.previous;
BEGIN
    FOREACH field IN ARRAY ARRAY[
        t.tenant_id::text, t.n::text, (extract(epoch FROM t.at) * 1000000)::bigint::text, t.login, t.actor,
        t.actor_id::text, t.request, t.address, t.action, t.object, t.object_id,
        t.detail::text, t.before::text, t.after::text]
    LOOP
        bytes := convert_to(field, 'UTF8');
        sum := sum || int4send(coalesce(octet_length(bytes), -1)) || coalesce(bytes, '');
    END LOOP;
    RETURN sha256(sum);
END
$$;

CREATE FUNCTION audit_chain() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, public AS $$
DECLARE
    head public.audit_heads;
BEGIN
    INSERT INTO public.audit_heads (tenant_id, n, at, hash)
    VALUES (NEW.tenant_id, 0, clock_timestamp(), decode(repeat('00', 32), 'hex'))
    ON CONFLICT DO NOTHING;
    SELECT *
      INTO STRICT head
      FROM public.audit_heads
     WHERE tenant_id = NEW.tenant_id
       FOR NO KEY UPDATE;
    NEW.n := head.n + 1;
    NEW.at := greatest(head.at, clock_timestamp());
    NEW.login := session_user;
    NEW.previous := head.hash;
    NEW.hash := public.audit_hash(NEW);
    UPDATE public.audit_heads
       SET n = NEW.n, at = NEW.at, hash = NEW.hash
     WHERE tenant_id = NEW.tenant_id;
    RETURN NEW;
END
$$;

CREATE TRIGGER audit_trail_chain BEFORE INSERT ON audit_trail
    FOR EACH ROW EXECUTE FUNCTION audit_chain();

-- Nobody changes what is written by mistake, the owner of the tables included. Who disables the triggers is found by
-- varve verify.
CREATE FUNCTION audit_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit trail only grows: its rows are never changed and never removed'
        USING ERRCODE = 'insufficient_privilege';
END
$$;

CREATE TRIGGER audit_trail_kept BEFORE UPDATE OR DELETE ON audit_trail
    FOR EACH ROW EXECUTE FUNCTION audit_refuse();
CREATE TRIGGER audit_trail_not_emptied BEFORE TRUNCATE ON audit_trail
    FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse();
CREATE TRIGGER audit_heads_grow BEFORE UPDATE ON audit_heads
    FOR EACH ROW WHEN (NEW.n <> OLD.n + 1) EXECUTE FUNCTION audit_refuse();
CREATE TRIGGER audit_heads_kept BEFORE DELETE ON audit_heads
    FOR EACH ROW EXECUTE FUNCTION audit_refuse();
CREATE TRIGGER audit_heads_not_emptied BEFORE TRUNCATE ON audit_heads
    FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse();
