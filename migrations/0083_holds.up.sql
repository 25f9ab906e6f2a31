-- Legal holds: a session, or all of a tenant, that nobody may erase. The foreign key keeps the row of a session that is
-- held; the trigger looks at the tenant, under a lock that placing a hold waits for.
CREATE TABLE session_holds (
    tenant_id   uuid        NOT NULL,
    session_key uuid        NOT NULL,
    reason      text        NOT NULL CHECK (octet_length(reason) BETWEEN 1 AND 1024),
    placed_by   uuid,
    placed_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, session_key),
    CONSTRAINT session_holds_session FOREIGN KEY (tenant_id, session_key) REFERENCES sessions (tenant_id, key)
);

ALTER TABLE session_holds ENABLE ROW LEVEL SECURITY;
ALTER TABLE session_holds FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON session_holds
    USING (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid);

ALTER TABLE tenants
    ADD COLUMN hold text CHECK (octet_length(hold) BETWEEN 1 AND 1024),
    ADD COLUMN held_by uuid,
    ADD COLUMN held_at timestamptz;

CREATE FUNCTION refuse_held() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, public AS $$
DECLARE
    held boolean;
BEGIN
    SELECT hold IS NOT NULL
      INTO held
      FROM public.tenants
     WHERE id = OLD.tenant_id
       FOR SHARE;
    IF held THEN
        RAISE EXCEPTION 'the tenant is under a legal hold: nothing of it is erased'
            USING ERRCODE = 'restrict_violation', CONSTRAINT = 'tenants_hold';
    END IF;
    RETURN OLD;
END
$$;

CREATE TRIGGER sessions_held BEFORE DELETE ON sessions
    FOR EACH ROW EXECUTE FUNCTION refuse_held();
