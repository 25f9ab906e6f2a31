-- A login of varve_app reads its tenant's row, and reads and inserts its tenant's jobs; varve_worker reaches all. The
-- owner of the tables is not bound: no process serves as the owner.
ALTER TABLE tenants ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON tenants
    USING (id = nullif(current_setting('app.tenant_id', true), '')::uuid)
    WITH CHECK (id = nullif(current_setting('app.tenant_id', true), '')::uuid);
CREATE POLICY every_tenant ON tenants TO varve_worker USING (true) WITH CHECK (true);

ALTER TABLE river_job ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON river_job
    USING (args ->> 'tenant' = nullif(current_setting('app.tenant_id', true), ''))
    WITH CHECK (args ->> 'tenant' = nullif(current_setting('app.tenant_id', true), ''));
CREATE POLICY every_job ON river_job TO varve_worker USING (true) WITH CHECK (true);

-- Whoever is not the owner of the table may not put bytes of messages in, whatever login it is.
CREATE OR REPLACE FUNCTION refuse_new_body() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF pg_has_role(current_user, (SELECT relowner FROM pg_class WHERE oid = TG_RELID), 'USAGE') THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'the bytes of a message are written once';
END
$$;

DROP TRIGGER messages_body ON messages;
CREATE TRIGGER messages_body
    BEFORE UPDATE OF body, view_body, bytes ON messages
    FOR EACH ROW
    WHEN (NEW.body IS NOT NULL)
    EXECUTE FUNCTION refuse_new_body();
