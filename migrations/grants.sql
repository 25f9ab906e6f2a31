-- All that the roles may do: varve_worker has the rights of varve_app, and varve_admin those of varve_worker. There is
-- no TRUNCATE, which row-level security does not bind, and messages and versions of policies are written once: of a
-- message, only that it was removed or superseded is noted later, and its bytes may move into a pack (a trigger refuses
-- to put any in).
GRANT USAGE ON SCHEMA public TO varve_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO varve_app;
GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO varve_app;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO varve_app;
REVOKE INSERT, UPDATE, DELETE ON schema_migrations, river_migration, tenants, api_keys FROM varve_app;
REVOKE ALL ON operator_keys, campaigns FROM varve_app;

-- Who serves a tenant looks whether it moves. Only the operator's command moves it.
REVOKE ALL ON tenant_moves FROM varve_app;
GRANT SELECT (tenant, state, frozen_until, address) ON tenant_moves TO varve_app;
REVOKE UPDATE ON messages, policy_versions FROM varve_app;
GRANT UPDATE (removed_at, removed_seq, superseded_by, body, view_body, digest, calls, answers, shape, bytes)
    ON messages TO varve_app;

-- The audit trail only grows. The trigger of an insert, which has the owner's rights, gives a row its place and its hash.
REVOKE INSERT, UPDATE, DELETE ON audit_trail, audit_heads, audit_anchors, audit_stubs FROM varve_app;
GRANT INSERT (tenant_id, actor, actor_id, request, address, action, object, object_id, detail, before, after)
    ON audit_trail TO varve_app;

-- What its time is over for is removed by a worker, through a function that leaves the trail provable.
REVOKE EXECUTE ON FUNCTION audit_prune FROM varve_app;
GRANT EXECUTE ON FUNCTION audit_prune TO varve_worker;

-- What an erasure has counted is never taken back, and its receipt stays. Only workers sign.
REVOKE DELETE ON erasures FROM varve_app;
REVOKE ALL ON receipt_keys FROM varve_app;
GRANT SELECT (id, public, created_at, live) ON receipt_keys TO varve_app;
GRANT SELECT, INSERT ON receipt_keys TO varve_worker;

-- The last step of the deletion of a tenant is a worker's, too: the function deletes what nobody else may.
REVOKE EXECUTE ON FUNCTION end_tenant, audit_blank_tenant FROM varve_app;
GRANT EXECUTE ON FUNCTION end_tenant, audit_blank_tenant TO varve_worker;

-- Events are written and forgotten. A trigger numbers them at the commit, with the owner's rights.
REVOKE INSERT, UPDATE ON events FROM varve_app;
REVOKE INSERT, UPDATE, DELETE ON event_heads FROM varve_app;
GRANT INSERT (tenant_id, id, type, topic, data, once) ON events TO varve_app;

-- The API makes the secrets that sign what is sent to webhooks, and cannot read them.
REVOKE SELECT, UPDATE ON webhook_secrets FROM varve_app;
GRANT SELECT (tenant_id, webhook_id, id, expires_at), UPDATE (expires_at) ON webhook_secrets TO varve_app;
GRANT SELECT ON webhook_secrets TO varve_worker;

-- A tenant's own keys are made and ended by the API, and it notes when they were used. A trigger refuses to let one that
-- has ended live again.
GRANT INSERT, UPDATE (revoked_at, expires_at, last_used_at) ON api_keys TO varve_app;

-- The API inserts its tenant's jobs and lets them start at once. Row-level security hides those of others.
REVOKE ALL ON river_leader, river_queue, river_notification, workers FROM varve_app;
REVOKE DELETE ON river_job FROM varve_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON river_leader, river_queue, river_notification, river_job, workers TO varve_worker;

-- Workers look, in one statement, for what is to be done for all tenants.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['event_heads', 'webhook_turns', 'retention'] LOOP
        IF NOT EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = name::regclass AND p.polname = 'worker') THEN
            EXECUTE format('CREATE POLICY worker ON %I TO varve_worker USING (true) WITH CHECK (true)', name);
        END IF;
    END LOOP;
END
$$;

-- The operator makes tenants and keys of all kinds. varve verify --repair writes again what is extracted from messages.
GRANT INSERT, UPDATE ON tenants TO varve_admin;
GRANT SELECT, INSERT, UPDATE ON operator_keys TO varve_admin;
GRANT SELECT, INSERT ON campaigns TO varve_admin;
GRANT UPDATE (live) ON receipt_keys TO varve_admin;
GRANT UPDATE (role, tokens, starts_unit, flags) ON messages TO varve_admin;

-- varve backup reads everything. Row-level security shows it all rows by a policy: BYPASSRLS is not to be had everywhere.
GRANT USAGE ON SCHEMA public TO varve_backup;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO varve_backup;
GRANT SELECT ON ALL SEQUENCES IN SCHEMA public TO varve_backup;
DO $$
DECLARE
    name text;
BEGIN
    FOR name IN
        SELECT c.relname
          FROM pg_class c
         WHERE c.relnamespace = 'public'::regnamespace
           AND c.relrowsecurity
           AND NOT EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = c.oid AND p.polname = 'backup')
    LOOP
        EXECUTE format('CREATE POLICY backup ON %I FOR SELECT TO varve_backup USING (true)', name);
    END LOOP;
END
$$;
