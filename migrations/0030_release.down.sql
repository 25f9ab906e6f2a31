-- Back to the schema of 0.1.0. SQL cannot open a pack or an archive, and cannot read an object: what lies there must be
-- brought back first. What 0.1.0 has no column for is lost.

-- Row-level security is forced on the owner, too, who has no tenant here.
ALTER TABLE sessions NO FORCE ROW LEVEL SECURITY;
ALTER TABLE messages NO FORCE ROW LEVEL SECURITY;
ALTER TABLE checkpoints NO FORCE ROW LEVEL SECURITY;
ALTER TABLE results NO FORCE ROW LEVEL SECURITY;
ALTER TABLE result_bodies NO FORCE ROW LEVEL SECURITY;
ALTER TABLE result_chunks NO FORCE ROW LEVEL SECURITY;
ALTER TABLE runs NO FORCE ROW LEVEL SECURITY;
ALTER TABLE policies NO FORCE ROW LEVEL SECURITY;
ALTER TABLE message_packs NO FORCE ROW LEVEL SECURITY;
ALTER TABLE session_archives NO FORCE ROW LEVEL SECURITY;

DO $$
BEGIN
    IF EXISTS (SELECT FROM session_archives) THEN
        RAISE EXCEPTION 'there are archived or cold sessions: bring them back, or erase them, first';
    END IF;
    IF EXISTS (SELECT FROM message_packs) THEN
        RAISE EXCEPTION 'messages lie in packs, which an older version cannot read: restore a backup from before';
    END IF;
    IF EXISTS (SELECT FROM result_bodies WHERE store <> 0 AND sha256 IS NOT NULL) THEN
        RAISE EXCEPTION 'results lie outside the database: varve results move --to postgres brings them back';
    END IF;
END
$$;

-- == Triggers, policies and jobs =======================================================================================

DROP TRIGGER sessions_id_check ON sessions;
DROP TRIGGER sessions_window_tokens_check ON sessions;
DROP TRIGGER sessions_overhead_tokens_check ON sessions;
DROP TRIGGER sessions_window_source_check ON sessions;
DROP TRIGGER sessions_armed_threshold_check ON sessions;
DROP TRIGGER sessions_calibration_check ON sessions;
DROP TRIGGER sessions_archived_check ON sessions;
DROP TRIGGER sessions_metadata_made ON sessions;
DROP TRIGGER sessions_metadata_changed ON sessions;
DROP TRIGGER sessions_metadata_gone ON sessions;
DROP TRIGGER sessions_held ON sessions;
DROP TRIGGER messages_seq_check ON messages;
DROP TRIGGER messages_tokens_check ON messages;
DROP TRIGGER messages_removed_check ON messages;
DROP TRIGGER messages_view_check ON messages;
DROP TRIGGER messages_packed_check ON messages;
DROP TRIGGER messages_superseded_check ON messages;
DROP TRIGGER messages_body ON messages;
DROP TRIGGER runs_ended ON runs;
DROP INDEX runs_unfinished;
DROP TRIGGER imports_ended ON imports;
DROP TRIGGER api_keys_end ON api_keys;
DROP TRIGGER job_awake ON river_job;
DROP TRIGGER job_inserted ON river_job;
DROP TRIGGER job_waits ON river_job;
DROP TRIGGER job_now ON river_job;
DROP TRIGGER job_place_updated ON river_job;
DROP TRIGGER job_place_inserted ON river_job;

DROP POLICY as_appended ON messages;
DROP POLICY frozen ON sessions;
DROP POLICY operators ON recompactions;
DROP POLICY every_job ON river_job;
DROP POLICY tenant ON river_job;
ALTER TABLE river_job DISABLE ROW LEVEL SECURITY;
DROP POLICY every_tenant ON tenants;
DROP POLICY tenant ON tenants;
ALTER TABLE tenants DISABLE ROW LEVEL SECURITY;

DROP INDEX job_places;
DELETE FROM river_job WHERE queue = 'summary';

-- == Results ===========================================================================================================

-- Each fork gets the chunks of the bodies that it shares.
INSERT INTO result_chunks (tenant_id, session_key, body_id, n, at, line, in_line, size, codec, digest, body)
SELECT b.tenant_id, b.session_key, b.id, c.n, c.at, c.line, c.in_line, c.size, c.codec, c.digest, c.body
  FROM result_bodies b
  JOIN result_chunks c ON c.tenant_id = b.tenant_id AND c.session_key = b.held_in AND c.body_id = b.id;

-- Of results that share a place, all but one get the next free places after the message's last part: their refs, by
-- which everything names them, stay.
UPDATE results r
   SET part = moved.part
  FROM (SELECT tenant_id, session_key, ref,
               last + row_number() OVER (PARTITION BY tenant_id, session_key, seq ORDER BY part, ref) AS part
          FROM (SELECT tenant_id, session_key, seq, part, ref,
                       max(part) OVER (PARTITION BY tenant_id, session_key, seq) AS last,
                       row_number() OVER (PARTITION BY tenant_id, session_key, seq, part ORDER BY ref) AS nth
                  FROM results) placed
         WHERE nth > 1) moved
 WHERE (r.tenant_id, r.session_key, r.ref) = (moved.tenant_id, moved.session_key, moved.ref);

-- The chunks of a body are zstd frames, and so is what they are one after another. Results that lie in the log have no
-- row in an older schema, whose programs find them in the log. Bodies that are being written are dropped.
DELETE FROM results
 WHERE body_id IS NULL;

SET CONSTRAINTS ALL IMMEDIATE;

CREATE TABLE whole_bodies (
    tenant_id   uuid     NOT NULL,
    session_key uuid     NOT NULL,
    sha256      bytea    NOT NULL,
    codec       smallint NOT NULL,
    body        bytea    NOT NULL
);

ALTER TABLE whole_bodies
    ALTER COLUMN body SET STORAGE EXTERNAL;

INSERT INTO whole_bodies (tenant_id, session_key, sha256, codec, body)
SELECT b.tenant_id, b.session_key, b.sha256, max(c.codec), string_agg(c.body, '' ORDER BY c.n)
  FROM result_bodies b
  JOIN result_chunks c ON c.tenant_id = b.tenant_id AND c.session_key = b.session_key AND c.body_id = b.id
 WHERE b.sha256 IS NOT NULL
 GROUP BY b.tenant_id, b.session_key, b.id, b.sha256;

-- == Tables and functions ==============================================================================================

ALTER TABLE results
    DROP CONSTRAINT results_seq_check,
    DROP COLUMN body_id; -- and with it the foreign key to result_bodies

DROP TABLE
    archive_parts, audit_heads, audit_trail, tenant_tasks, due_sessions,
    erasure_sessions, erasures, event_heads, events, findings, installation, message_packs, model_answers,
    model_spending, operator_keys, replay_outcomes, replay_sessions, replays,
    result_bodies, result_chunks, retention, rounds, search_blocks, search_sessions, search_settings,
    session_archives, session_failures, session_holds, session_metadata, session_pins, session_retention,
    session_tokens, summaries, uploads, usage_days, usage_sessions, verifications, webhook_deliveries,
    webhook_secrets, webhook_turns, webhooks, workers
    CASCADE;

DROP FUNCTION
    audit_blank, audit_blank_subject, audit_blank_tenant, audit_blanks, audit_chain, audit_keep, audit_keep_row,
    audit_prune, audit_refuse, end_tenant, event_number,
    index_metadata, job_now, job_place, job_waits, job_wakes, metadata_pairs, notify_ended, refuse_archived,
    refuse_early_end, refuse_held, refuse_new_body, refuse_revival, refuse_row, search_candidates, use_store;

ALTER TABLE whole_bodies RENAME TO result_bodies;

ALTER TABLE result_bodies
    ADD PRIMARY KEY (tenant_id, session_key, sha256);

CREATE INDEX results_body ON results (tenant_id, session_key, sha256);
DROP INDEX results_place;
DROP INDEX results_tool;
DROP INDEX results_category;

ALTER TABLE results
    ADD CONSTRAINT results_tenant_id_session_key_seq_part_key UNIQUE (tenant_id, session_key, seq, part),
    ADD FOREIGN KEY (tenant_id, session_key, sha256) REFERENCES result_bodies (tenant_id, session_key, sha256)
    DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE result_bodies
    ENABLE ROW LEVEL SECURITY,
    FORCE ROW LEVEL SECURITY;

CREATE POLICY tenant ON result_bodies
    USING (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid);

CREATE TABLE checkpoint_results (
    tenant_id   uuid    NOT NULL,
    session_key uuid    NOT NULL,
    n           integer NOT NULL,
    ref         text    NOT NULL,
    PRIMARY KEY (tenant_id, session_key, n, ref),
    FOREIGN KEY (tenant_id, session_key, n) REFERENCES checkpoints (tenant_id, session_key, n) DEFERRABLE INITIALLY DEFERRED,
    FOREIGN KEY (tenant_id, session_key, ref) REFERENCES results (tenant_id, session_key, ref) DEFERRABLE INITIALLY DEFERRED
);

CREATE INDEX checkpoint_results_ref ON checkpoint_results (tenant_id, session_key, ref);

-- A ref belongs to the first checkpoint whose manifest names it: the others build on that one.
INSERT INTO checkpoint_results (tenant_id, session_key, n, ref)
SELECT c.tenant_id, c.session_key, min(c.n), r.ref
  FROM checkpoints c
 CROSS JOIN jsonb_array_elements(c.manifest) a
  JOIN results r ON r.tenant_id = c.tenant_id AND r.session_key = c.session_key AND r.ref = a ->> 'ref'
 WHERE jsonb_typeof(c.manifest) = 'array'
 GROUP BY c.tenant_id, c.session_key, r.ref;

SET CONSTRAINTS ALL IMMEDIATE;

ALTER TABLE checkpoint_results ENABLE ROW LEVEL SECURITY;

CREATE POLICY tenant ON checkpoint_results
    USING (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid);

-- == Messages ==========================================================================================================

-- An id that several messages have had stays with the newest.
UPDATE messages
   SET client_id = NULL
 WHERE superseded_by > removed_seq;

DROP INDEX messages_superseded;
DROP INDEX messages_state;
DROP INDEX messages_client_id;
CREATE UNIQUE INDEX messages_client_id ON messages (tenant_id, session_key, client_id) WHERE client_id IS NOT NULL;

ALTER TABLE messages
    ALTER COLUMN body SET NOT NULL,
    ALTER COLUMN body SET COMPRESSION DEFAULT,
    ALTER COLUMN view_body SET COMPRESSION DEFAULT,
    ALTER COLUMN calls SET NOT NULL,
    ALTER COLUMN answers SET NOT NULL,
    ALTER COLUMN shape DROP NOT NULL,
    DROP COLUMN digest,
    DROP COLUMN bytes,
    DROP COLUMN item_id,
    DROP COLUMN superseded_by,
    ADD CONSTRAINT messages_seq_check CHECK (seq > 0),
    ADD CONSTRAINT messages_tokens_check CHECK (tokens >= 0),
    ADD CONSTRAINT messages_view_tokens_check CHECK (view_tokens >= 0),
    ADD CONSTRAINT messages_check CHECK ((view_body IS NULL) = (view_tokens IS NULL)),
    ADD CONSTRAINT messages_check1 CHECK (removed_seq > seq),
    ADD CONSTRAINT messages_check2 CHECK ((removed_at IS NULL) = (removed_seq IS NULL)),
    RESET (autovacuum_vacuum_insert_scale_factor, autovacuum_vacuum_scale_factor, autovacuum_analyze_scale_factor);

ALTER TABLE messages RENAME COLUMN shape TO fact;

-- == Sessions and checkpoints ==========================================================================================

UPDATE sessions
   SET calibration = 3
 WHERE calibration > 3;

ALTER TABLE sessions
    DROP COLUMN gap_seq,
    DROP COLUMN unseen_tokens,
    DROP COLUMN shrunk_tokens,
    DROP COLUMN idle_asked,
    DROP COLUMN floor_seq,
    DROP COLUMN floor_version,
    DROP COLUMN floor_hides,
    DROP COLUMN floor_engine,
    DROP COLUMN damaged_n,
    DROP COLUMN offloaded_n,
    DROP COLUMN unbound_seq,
    DROP COLUMN engine_version,
    DROP COLUMN policy_version,
    DROP COLUMN forked_from,
    DROP COLUMN forked_seq,
    DROP COLUMN forked_checkpoint,
    DROP COLUMN frozen_at,
    DROP COLUMN archived,
    DROP COLUMN restored_at,
    ADD CONSTRAINT sessions_id_check CHECK (octet_length(id) BETWEEN 1 AND 255),
    ADD CONSTRAINT sessions_window_tokens_check CHECK (window_tokens > 0),
    ADD CONSTRAINT sessions_overhead_tokens_check CHECK (overhead_tokens >= 0),
    ADD CONSTRAINT sessions_window_source_check CHECK (window_source IN ('request', 'model', 'default')),
    ADD CONSTRAINT sessions_wake_check CHECK (armed_threshold BETWEEN 1 AND 3),
    ADD CONSTRAINT sessions_calibration_check CHECK (calibration BETWEEN 0.5 AND 3),
    RESET (autovacuum_vacuum_scale_factor, autovacuum_analyze_scale_factor);

ALTER TABLE sessions RENAME COLUMN armed_threshold TO wake;

-- A pruned checkpoint keeps the numbers of its units and open calls. Its units were a list once.
UPDATE checkpoints
   SET units = '[]'
 WHERE jsonb_typeof(units) = 'object';

DROP INDEX checkpoints_created;

ALTER TABLE checkpoints
    ALTER COLUMN units SET COMPRESSION DEFAULT,
    ALTER COLUMN manifest SET COMPRESSION DEFAULT,
    DROP COLUMN body_digest,
    DROP COLUMN state_digest,
    DROP COLUMN forgotten,
    DROP COLUMN made_after;

ALTER TABLE checkpoints RENAME COLUMN validator_state TO walk;

-- == Policies, runs and the rest =======================================================================================

ALTER TABLE policies
    DROP COLUMN on_request,
    DROP COLUMN trigger_tokens,
    DROP COLUMN trigger_bytes,
    DROP COLUMN trim_ratio,
    DROP COLUMN budget_ratio,
    DROP COLUMN budget_min,
    DROP COLUMN budget_max,
    DROP COLUMN idle_ratio,
    DROP COLUMN idle_after,
    DROP COLUMN caps_over;
ALTER TABLE policies
    ADD COLUMN caps_over integer GENERATED ALWAYS AS (
        CASE
        WHEN document #>> '{cap,enabled}' = 'true' AND document #>> '{cap,at_insertion}' = 'true'
            THEN least(nullif((document #>> '{cap,max_tokens}')::integer, 0),
                       nullif((document #>> '{cap,max_bytes}')::integer, 0),
                       nullif((document #>> '{cap,max_chars}')::integer, 0),
                       nullif((document #>> '{cap,max_lines}')::integer, 0),
                       nullif((document #>> '{cap,max_line_chars}')::integer, 0))
        END
    ) STORED;

UPDATE runs
   SET cause = CASE cause WHEN 'idle' THEN 'threshold' ELSE 'manual' END
 WHERE cause IN ('idle', 'damage', 'summary');

ALTER TABLE runs
    DROP CONSTRAINT runs_cause_check,
    ADD CONSTRAINT runs_cause_check CHECK (cause IN ('threshold', 'hard', 'manual', 'sweep', 'follow_up', 'recompaction', 'restore'));

ALTER TABLE recompactions
    DROP COLUMN ask,
    DROP COLUMN group_id,
    DROP COLUMN per_minute,
    DROP COLUMN start_at,
    DROP COLUMN hours,
    DROP COLUMN next_start_at,
    DROP COLUMN paused_at,
    DROP COLUMN rollback_at,
    DROP COLUMN rolled_back_at,
    DROP COLUMN rolled_back,
    DROP COLUMN excepted,
    DROP COLUMN told,
    DROP COLUMN views_base,
    DROP COLUMN served_base,
    DROP COLUMN read_backs_base;

ALTER TABLE recompaction_sessions
    ALTER COLUMN recompaction_id RESET (n_distinct),
    DROP COLUMN base_n,
    DROP COLUMN checkpoint_n,
    DROP COLUMN views_before,
    DROP COLUMN served_before,
    DROP COLUMN read_backs_before,
    DROP COLUMN rollback,
    DROP COLUMN reason;

ALTER TABLE import_lines ALTER COLUMN import_id RESET (n_distinct);
DROP INDEX import_lines_outcome;
CREATE INDEX import_lines_rejected ON import_lines (tenant_id, import_id, n) WHERE outcome = 'rejected';

ALTER TABLE idempotency RESET (autovacuum_vacuum_scale_factor);

DROP INDEX api_keys_newest;
ALTER TABLE api_keys
    DROP COLUMN scopes,
    DROP COLUMN replaces,
    DROP COLUMN last_used_at;

DROP INDEX tenants_newest;
ALTER TABLE tenants
    DROP COLUMN limits,
    DROP COLUMN suspended,
    DROP COLUMN suspended_at,
    DROP COLUMN hold,
    DROP COLUMN held_by,
    DROP COLUMN held_at,
    DROP COLUMN erasure_id,
    DROP COLUMN most_idle_seconds,
    DROP COLUMN most_age_seconds;

ALTER TABLE sessions FORCE ROW LEVEL SECURITY;
ALTER TABLE messages FORCE ROW LEVEL SECURITY;
ALTER TABLE checkpoints FORCE ROW LEVEL SECURITY;
ALTER TABLE checkpoint_results FORCE ROW LEVEL SECURITY;
ALTER TABLE results FORCE ROW LEVEL SECURITY;
ALTER TABLE runs FORCE ROW LEVEL SECURITY;
ALTER TABLE policies FORCE ROW LEVEL SECURITY;
