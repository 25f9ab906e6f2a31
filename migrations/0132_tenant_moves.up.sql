-- The moves of tenants between databases: where a tenant that leaves is to go, and one that arrives (ADR 90). It has no
-- contents of a tenant, and is the operator's. address is what a caller is told of a tenant that has moved away.
CREATE TABLE tenant_moves (
    tenant       uuid        PRIMARY KEY,
    move         uuid        NOT NULL, -- the same in both databases
    name         text        NOT NULL,
    state        text        NOT NULL CHECK (state IN ('copying', 'frozen', 'switching', 'moved', 'arriving', 'arrived')),
    frozen_until timestamptz,          -- after which the tenant is served again, if its move has not come further
    address      text        CHECK (octet_length(address) BETWEEN 1 AND 1024),
    copied       jsonb       NOT NULL DEFAULT '{}', -- by table, what of it has arrived
    began_at     timestamptz NOT NULL DEFAULT now(),
    CHECK ((state = 'frozen') = (frozen_until IS NOT NULL))
);

-- What every transaction of a tenant that moves begins with: it can't write while the rest is copied, and does nothing
-- once the tenant is elsewhere, or is not here yet.
CREATE FUNCTION enter_move(state text, frozen_until timestamptz) RETURNS text
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF state IN ('moved', 'arriving') THEN
        RAISE EXCEPTION 'the tenant is not served here: %', state
            USING ERRCODE = 'VM001';
    END IF;
    IF state = 'switching' OR state = 'frozen' AND frozen_until > now() THEN
        RETURN set_config('transaction_read_only', 'on', true);
    END IF;
    RETURN '';
END
$$;
