-- Campaigns of operators: a recompaction for each of some tenants. Only varve_admin may read them.
CREATE TABLE campaigns (
    id         uuid        PRIMARY KEY,
    tenants    uuid[]      NOT NULL CHECK (cardinality(tenants) BETWEEN 1 AND 1000),
    filter     jsonb       NOT NULL,
    policy     json,
    pace       jsonb       NOT NULL,
    ask        boolean     NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX campaigns_newest ON campaigns (created_at DESC, id DESC);
