-- What of a tenant's requests is refused, and since when. Operators list the newest tenants first.
ALTER TABLE tenants
    ADD COLUMN suspended text CHECK (suspended IN ('reads', 'writes', 'all')),
    ADD COLUMN suspended_at timestamptz;

CREATE INDEX tenants_newest ON tenants (created_at DESC, id DESC);
