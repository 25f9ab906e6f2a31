-- When the sessions of a recompaction may begin, that nobody wants it to go on for now, and that it is taken back.
ALTER TABLE recompactions
    ADD COLUMN campaign_id    uuid,
    ADD COLUMN per_minute     integer CHECK (per_minute BETWEEN 1 AND 6000),
    ADD COLUMN start_at       timestamptz,
    ADD COLUMN hours          jsonb,
    ADD COLUMN next_start_at  timestamptz,
    ADD COLUMN paused_at      timestamptz,
    ADD COLUMN rollback_at    timestamptz,
    ADD COLUMN rolled_back_at timestamptz,
    ADD COLUMN rolled_back    bigint NOT NULL DEFAULT 0,
    ADD COLUMN excepted       bigint NOT NULL DEFAULT 0;

-- The checkpoint that a session had before, 0 for none, and the one that it got; what the ledger had counted of it by
-- then; and what became of it when the recompaction was taken back.
ALTER TABLE recompaction_sessions
    ADD COLUMN base_n            integer,
    ADD COLUMN checkpoint_n      integer,
    ADD COLUMN views_before      bigint,
    ADD COLUMN served_before     bigint,
    ADD COLUMN read_backs_before bigint,
    ADD COLUMN rollback          text CHECK (rollback IN ('rolled_back', 'excepted')),
    ADD COLUMN reason            text;

-- The recompactions of a campaign of operators: one for each of its tenants.
CREATE UNIQUE INDEX recompactions_campaign ON recompactions (tenant_id, campaign_id) WHERE campaign_id IS NOT NULL;
