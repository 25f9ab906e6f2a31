-- All that the roles may do, by name: nothing is said of what others have in the schema. varve_worker has the rights of
-- varve_app, and varve_admin those of varve_worker. There is no TRUNCATE, which row-level security does not bind. This
-- file is executed after every migration: it takes all rights away and gives them anew, in one transaction.

-- No login of the server makes objects of its own here that our functions could meet. The owner of the schema may not own
-- the database: then its administrator has to do this (docs/operations.md).
DO $$
BEGIN
    EXECUTE format('REVOKE TEMPORARY ON DATABASE %I FROM PUBLIC', current_database());
    REVOKE CREATE ON SCHEMA public FROM PUBLIC;
EXCEPTION
    WHEN insufficient_privilege THEN NULL;
END
$$;

GRANT USAGE ON SCHEMA public TO varve_app, varve_backup;

-- == Tables ============================================================================================================

-- varve backup reads everything. Row-level security shows it all rows by a policy: BYPASSRLS is not to be had everywhere.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY[
        'api_keys', 'archive_parts', 'audit_heads', 'audit_trail',
        'checkpoints', 'tenant_tasks', 'due_sessions', 'erasure_sessions', 'erasures', 'event_heads',
        'events', 'findings', 'idempotency', 'import_lines', 'imports', 'installation', 'message_packs', 'messages',
        'model_answers', 'model_spending', 'operator_keys', 'policies', 'policy_versions',
        'recompaction_sessions', 'recompactions', 'replay_outcomes', 'replay_sessions', 'replays',
        'result_bodies', 'result_chunks', 'results', 'retention', 'river_job', 'river_leader', 'river_migration',
        'river_notification', 'river_queue', 'rounds', 'runs', 'schema_migrations', 'search_blocks', 'search_sessions',
        'search_settings', 'session_archives', 'session_failures', 'session_holds', 'session_metadata', 'session_pins',
        'session_retention', 'session_tokens', 'sessions', 'summaries', 'tenants', 'uploads',
        'usage_days', 'usage_sessions', 'verifications', 'webhook_deliveries', 'webhook_secrets', 'webhook_turns',
        'webhooks', 'workers']
    LOOP
        EXECUTE format('REVOKE ALL ON %I FROM PUBLIC, varve_app, varve_worker, varve_admin, varve_backup', name);
        EXECUTE format('GRANT SELECT ON %I TO varve_backup', name);
        IF (SELECT relrowsecurity FROM pg_class WHERE oid = name::regclass)
           AND NOT EXISTS (SELECT FROM pg_policy WHERE polrelid = name::regclass AND polname = 'backup') THEN
            EXECUTE format('CREATE POLICY backup ON %I FOR SELECT TO varve_backup USING (true)', name);
        END IF;
    END LOOP;
END
$$;

GRANT SELECT, INSERT, UPDATE, DELETE ON
    archive_parts, checkpoints, tenant_tasks, due_sessions, erasure_sessions, findings, idempotency,
    import_lines, imports, message_packs, model_answers, model_spending, policies,
    recompaction_sessions, recompactions, replay_outcomes, replay_sessions, replays, result_bodies, result_chunks,
    results, retention, rounds, runs, search_blocks, search_sessions, search_settings, session_archives,
    session_failures, session_holds, session_metadata, session_pins, session_retention, session_tokens, sessions,
    summaries, uploads, usage_days, usage_sessions, verifications, webhook_deliveries, webhook_turns, webhooks
    TO varve_app;
GRANT SELECT ON installation, river_migration, schema_migrations, tenants TO varve_app;

-- Messages and versions of policies are written once: of a message, only that it was removed or superseded is noted
-- later, and its bytes may move into a pack (a trigger refuses to put any in).
GRANT SELECT, INSERT, DELETE ON messages, policy_versions TO varve_app;
GRANT UPDATE (removed_at, removed_seq, superseded_by, body, view_body, digest, calls, answers, shape, bytes)
    ON messages TO varve_app;

-- The audit trail only grows. The trigger of an insert, which has the owner's rights, gives a row its place and its hash.
GRANT SELECT ON audit_trail, audit_heads TO varve_app;
GRANT INSERT (tenant_id, actor, actor_id, request, address, action, object, object_id, detail, before, after)
    ON audit_trail TO varve_app;

-- What an erasure has counted is never taken back, and its receipt stays.
GRANT SELECT, INSERT, UPDATE ON erasures TO varve_app;

-- Events are written and forgotten. A trigger numbers them at the commit, with the owner's rights.
GRANT SELECT, DELETE ON events TO varve_app;
GRANT INSERT (tenant_id, id, type, topic, data, once) ON events TO varve_app;
GRANT SELECT ON event_heads TO varve_app;

-- The API makes the secrets that sign what is sent to webhooks, and cannot read them.
GRANT INSERT, DELETE ON webhook_secrets TO varve_app;
GRANT SELECT (tenant_id, webhook_id, id, expires_at), UPDATE (expires_at) ON webhook_secrets TO varve_app;
GRANT SELECT ON webhook_secrets TO varve_worker;

-- A tenant's own keys are made and ended by the API, and it notes when they were used. A trigger refuses to let one that
-- has ended live again.
GRANT SELECT, INSERT, UPDATE (revoked_at, expires_at, last_used_at) ON api_keys TO varve_app;

-- The API inserts its tenant's jobs and lets them start at once. Row-level security hides those of others.
GRANT SELECT, INSERT, UPDATE ON river_job TO varve_app;
REVOKE ALL ON SEQUENCE river_job_id_seq, river_notification_id_seq, search_blocks_id_seq
    FROM PUBLIC, varve_app, varve_worker, varve_admin, varve_backup;
GRANT USAGE, SELECT ON SEQUENCE river_job_id_seq TO varve_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON river_leader, river_queue, river_notification, river_job, workers TO varve_worker;
GRANT USAGE, SELECT ON SEQUENCE river_notification_id_seq TO varve_worker;

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
GRANT UPDATE (role, tokens, starts_unit, flags) ON messages TO varve_admin;

GRANT SELECT ON SEQUENCE river_job_id_seq, river_notification_id_seq, search_blocks_id_seq TO varve_backup;

-- == Functions =========================================================================================================

-- Nobody calls the functions of triggers.
REVOKE ALL ON FUNCTION
    audit_blank, audit_blank_subject, audit_blank_tenant, audit_blanks, audit_chain, audit_content, audit_hash, audit_keep,
    audit_keep_row, audit_prune, audit_refuse, end_tenant, event_number,
    index_metadata, job_now, job_place, job_waits, job_wakes, metadata_pairs, notify_ended,
    refuse_archived, refuse_early_end, refuse_held, refuse_new_body, refuse_revival, refuse_row,
    river_job_state_in_bitmask, search_candidates, use_store
    FROM PUBLIC, varve_app, varve_worker, varve_admin;

GRANT EXECUTE ON FUNCTION
    audit_blank, audit_blank_subject, metadata_pairs,
    river_job_state_in_bitmask, search_candidates, use_store
    TO varve_app;

-- What its time is over for is removed by a worker, through functions that leave the trail provable. The last step of the
-- deletion of a tenant is a worker's, too: the function deletes what nobody else may.
GRANT EXECUTE ON FUNCTION audit_prune, end_tenant, audit_blank_tenant TO varve_worker;
