-- The longest retention that operators leave a tenant and its sessions, NULL for no bound.
ALTER TABLE tenants
    ADD COLUMN most_idle_seconds bigint CHECK (most_idle_seconds > 0),
    ADD COLUMN most_age_seconds  bigint CHECK (most_age_seconds > 0);
