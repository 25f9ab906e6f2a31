-- The schema of release 0.2.0, and what becomes of the rows of 0.1.0. A subject has a section; what is deleted from a
-- section is gone from the release. This file may be edited until the release is tagged. No program of 0.1.0 works on
-- this schema, or the other way round: stop all processes, migrate, start the new ones.

-- Row-level security is forced on the owner, too, who has no tenant here. It is forced again at the end.
ALTER TABLE sessions NO FORCE ROW LEVEL SECURITY;
ALTER TABLE messages NO FORCE ROW LEVEL SECURITY;
ALTER TABLE checkpoints NO FORCE ROW LEVEL SECURITY;
ALTER TABLE policy_versions NO FORCE ROW LEVEL SECURITY;
ALTER TABLE results NO FORCE ROW LEVEL SECURITY;
ALTER TABLE result_bodies NO FORCE ROW LEVEL SECURITY;

-- == Names and facts of messages ======================================================================================

-- Three columns get the names that the code and the documentation use. Their values stay as they are.
ALTER TABLE sessions RENAME COLUMN wake TO armed_threshold;
ALTER TABLE messages RENAME COLUMN fact TO shape;
ALTER TABLE checkpoints RENAME COLUMN walk TO validator_state;

-- gap_seq is the last seq that no message of a session's views has, 0 if there is none: a removal takes one, and an
-- import may leave some out. Where there is no gap after a checkpoint, a read knows the seqs of messages by counting.
ALTER TABLE sessions ADD COLUMN gap_seq bigint NOT NULL DEFAULT 0;

UPDATE sessions s
   SET gap_seq = last_seq
 WHERE last_seq > (SELECT count(*)
                     FROM messages
                    WHERE tenant_id = s.tenant_id AND session_key = s.key AND removed_at IS NULL);

-- Of a message from before version 0.1.0 only the format is known, which begins a shape.
UPDATE messages
   SET shape = format::text
 WHERE shape IS NULL;

ALTER TABLE messages ALTER COLUMN shape SET NOT NULL;

-- == When a session is due ============================================================================================

-- What callers report as used is compared with the triggers at once. unseen_tokens is what the provider counted beyond
-- the estimate of the view and the declared overhead when a usage came last: tools, a system prompt, what the estimate
-- misses. shrunk_tokens is by how much compactions have shrunk the view since then: the next usage may be of a request
-- that was made before.
ALTER TABLE sessions
    ADD COLUMN unseen_tokens bigint NOT NULL DEFAULT 0,
    ADD COLUMN shrunk_tokens bigint NOT NULL DEFAULT 0;

-- When a session is due is a matter of the policy's document, beside the columns trigger_ratio and hard_ratio: package
-- due compares these with every append. A document from before has none of the fields, which then have no effect.
ALTER TABLE policies
    ADD COLUMN on_request boolean NOT NULL GENERATED ALWAYS AS (
        (document #>> '{enabled}') IS NOT DISTINCT FROM 'false' OR (document #>> '{auto}') IS NOT DISTINCT FROM 'false'
    ) STORED,
    ADD COLUMN trigger_tokens bigint NOT NULL GENERATED ALWAYS AS (
        coalesce((document #>> '{trigger_tokens}')::bigint, 0)
    ) STORED,
    ADD COLUMN trim_ratio double precision NOT NULL GENERATED ALWAYS AS (
        CASE
        WHEN document #>> '{trim,enabled}' = 'true' AND document #>> '{trim,eager}' = 'true'
            THEN greatest((document #>> '{trim,floor_ratio}')::double precision, 0.00001)
        ELSE 0
        END
    ) STORED,
    ADD COLUMN budget_ratio double precision NOT NULL GENERATED ALWAYS AS (
        CASE
        WHEN document #>> '{budget,enabled}' = 'true' AND document #>> '{budget,eager}' = 'true'
             AND (document #>> '{budget,tokens}')::bigint = 0
            THEN (document #>> '{budget,ratio}')::double precision
        ELSE 0
        END
    ) STORED,
    ADD COLUMN budget_min bigint NOT NULL GENERATED ALWAYS AS (
        CASE
        WHEN document #>> '{budget,enabled}' = 'true' AND document #>> '{budget,eager}' = 'true'
            THEN coalesce(nullif((document #>> '{budget,tokens}')::bigint, 0),
                          (document #>> '{budget,min_tokens}')::bigint)
        ELSE 0
        END
    ) STORED,
    ADD COLUMN budget_max bigint NOT NULL GENERATED ALWAYS AS (
        CASE
        WHEN document #>> '{budget,enabled}' = 'true' AND document #>> '{budget,eager}' = 'true'
            THEN coalesce(nullif((document #>> '{budget,tokens}')::bigint, 0),
                          (document #>> '{budget,max_tokens}')::bigint)
        ELSE 0
        END
    ) STORED;

-- A policy that is switched off caps nothing.
ALTER TABLE policies DROP COLUMN caps_over;
ALTER TABLE policies
    ADD COLUMN caps_over integer GENERATED ALWAYS AS (
        CASE
        WHEN (document #>> '{enabled}') IS DISTINCT FROM 'false'
             AND document #>> '{cap,enabled}' = 'true' AND document #>> '{cap,at_insertion}' = 'true'
            THEN least(nullif((document #>> '{cap,max_tokens}')::integer, 0),
                       nullif((document #>> '{cap,max_bytes}')::integer, 0),
                       nullif((document #>> '{cap,max_chars}')::integer, 0),
                       nullif((document #>> '{cap,max_lines}')::integer, 0),
                       nullif((document #>> '{cap,max_line_chars}')::integer, 0))
        END
    ) STORED;

-- == Replays ==========================================================================================================

-- A replay measures policies over stored sessions of a tenant. It reads their logs, and changes none of them. contender
-- is the one that is being measured.
CREATE TABLE replays (
    tenant_id    uuid        NOT NULL REFERENCES tenants (id),
    id           uuid        NOT NULL,
    state        text        NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'running', 'cancelling', 'done', 'failed', 'cancelled')),
    filter       jsonb       NOT NULL,
    contenders   json        NOT NULL,
    windows      integer[]   NOT NULL,
    sample       integer     NOT NULL CHECK (sample BETWEEN 1 AND 1000),
    seed         bigint      NOT NULL,
    max_messages bigint      NOT NULL,
    max_bytes    bigint      NOT NULL,
    matched      bigint      NOT NULL DEFAULT 0,
    too_short    bigint      NOT NULL DEFAULT 0,
    total        bigint      NOT NULL DEFAULT 0,
    contender    text,
    report       json,
    error        text,
    created_at   timestamptz NOT NULL DEFAULT now(),
    started_at   timestamptz,
    finished_at  timestamptz,
    progress     jsonb, -- what became of the sessions, written down at the end; counted again where this is NULL
    PRIMARY KEY (tenant_id, id)
);

CREATE INDEX replays_newest ON replays (tenant_id, created_at DESC, id DESC);

-- A tenant has one replay at a time.
CREATE UNIQUE INDEX replays_live ON replays (tenant_id) WHERE finished_at IS NULL;

-- The sessions of a replay in the order of their sample, with the log and the window that they had when the sample was
-- taken: a replay that is continued measures what it began with. attempts counts since the last outcome. There is no
-- foreign key to sessions: taking the sample would wait for every session that is just being erased.
CREATE TABLE replay_sessions (
    tenant_id     uuid        NOT NULL,
    replay_id     uuid        NOT NULL,
    session_key   uuid        NOT NULL,
    place         integer     NOT NULL,
    last_seq      bigint      NOT NULL,
    window_tokens integer     NOT NULL,
    state         text        NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'measured', 'skipped', 'failed')),
    reason        text,
    attempts      integer     NOT NULL DEFAULT 0,
    finished_at   timestamptz,
    PRIMARY KEY (tenant_id, replay_id, session_key),
    FOREIGN KEY (tenant_id, replay_id) REFERENCES replays (tenant_id, id)
);

CREATE UNIQUE INDEX replay_sessions_order ON replay_sessions (tenant_id, replay_id, place);

CREATE INDEX replay_sessions_left ON replay_sessions (tenant_id, replay_id, place) WHERE finished_at IS NULL;

-- For the erasure of a session.
CREATE INDEX replay_sessions_session ON replay_sessions (tenant_id, session_key);

-- What was measured of one session under one contender, by its place in the replay's list, in one window.
CREATE TABLE replay_outcomes (
    tenant_id     uuid    NOT NULL,
    replay_id     uuid    NOT NULL,
    session_key   uuid    NOT NULL,
    contender     integer NOT NULL,
    window_tokens integer NOT NULL,
    outcome       jsonb   NOT NULL,
    PRIMARY KEY (tenant_id, replay_id, session_key, contender, window_tokens),
    FOREIGN KEY (tenant_id, replay_id, session_key) REFERENCES replay_sessions (tenant_id, replay_id, session_key)
);

CREATE INDEX replay_outcomes_session ON replay_outcomes (tenant_id, session_key);

-- == Sessions that nobody uses ========================================================================================

-- A session that nobody uses is compacted below its trigger, from a share of the window on, once its provider's cache is
-- cold. idle_asked says that it has asked for that since its newest compaction. A document from before has no such
-- field, which then has no effect.
--
-- A floor ends with the message floor_seq, after which the policy protects less (0: only growth ends it), and with
-- another version of the tenant's policy. The floors from before end now.
ALTER TABLE policies
    ADD COLUMN idle_ratio double precision NOT NULL GENERATED ALWAYS AS (
        CASE
        WHEN document #>> '{idle,enabled}' = 'true'
             AND greatest((document #>> '{idle,after_seconds}')::bigint,
                          (document #>> '{economy,ttl_seconds}')::bigint) > 0
            THEN (document #>> '{idle,from}')::double precision
        ELSE 0
        END
    ) STORED,
    ADD COLUMN idle_after bigint NOT NULL GENERATED ALWAYS AS (
        CASE
        WHEN document #>> '{idle,enabled}' = 'true'
            THEN coalesce(nullif((document #>> '{idle,after_seconds}')::bigint, 0),
                          (document #>> '{economy,ttl_seconds}')::bigint)
        ELSE 0
        END
    ) STORED;

ALTER TABLE sessions
    ADD COLUMN idle_asked    boolean NOT NULL DEFAULT false,
    ADD COLUMN floor_seq     bigint  NOT NULL DEFAULT 0,
    ADD COLUMN floor_version integer NOT NULL DEFAULT 0;

-- == Digests ==========================================================================================================

-- What is stored is proven to be what came in. messages.digest is the SHA-256 of body, written with it. body_digest is
-- that of all that is needed to serve a checkpoint, state_digest that of its state. Rows from before have none and are
-- not checked; varve verify --repair writes what is missing.
--
-- damaged_n is the checkpoint of a session whose damage has asked for a compaction from the log already.
ALTER TABLE messages
    ADD COLUMN digest bytea;

ALTER TABLE checkpoints
    ADD COLUMN body_digest  bytea CHECK (octet_length(body_digest) = 32),
    ADD COLUMN state_digest bytea CHECK (octet_length(state_digest) = 32);

ALTER TABLE sessions
    ADD COLUMN damaged_n integer NOT NULL DEFAULT 0;

-- == Results: bodies in chunks, lists, uploads ========================================================================

-- The body of a result is cut into chunks, each compressed for itself, so that a range of its lines is read without the
-- rest. Bodies and chunks are rows here whatever holds the bytes: store is 0 for PostgreSQL (result_chunks.body), 1 for
-- a file system, 2 for an S3-compatible store (a part of the object result_chunks.object).
--
-- A body is complete once sha256 is set; until then it is being written, and writing is what a writer needs to go on.
-- touched_at is when a body was last written to. A body that nothing names is collected some time after that.
--
-- A result without a body lies in the log: its message has its bytes.
--
-- A fork has the bodies of the session that it was made of without a copy: held_in is the session that has their chunks,
-- NULL for the body's own. When that session is erased, its chunks go to one of the forks; what lies outside the
-- database stays where it is, under the prefix of the session objects_in, NULL for the body's own.
--
-- installation names this database to a store outside, which belongs to one database only, and has the numbers of those
-- that it has used. Sessions made before items_since may have messages with a provider's id and without item_id: those that are
-- there, and for a day those that a process of the version before makes. oldest_program is the version of the schema that
-- a program must know to serve this database: a later file raises it where programs of before fail on what it makes.

ALTER TABLE result_bodies RENAME TO whole_bodies;
ALTER INDEX result_bodies_pkey RENAME TO whole_bodies_pkey;

CREATE TABLE installation (
    id          uuid        PRIMARY KEY DEFAULT gen_random_uuid(),
    stores      smallint[]  NOT NULL DEFAULT '{}',
    items_since timestamptz NOT NULL DEFAULT '-infinity',
    oldest_program integer  NOT NULL DEFAULT 30
);

-- What lies in a store that was used once may be needed: its number stays.
CREATE FUNCTION use_store(kind smallint) RETURNS void LANGUAGE sql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
    UPDATE public.installation
       SET stores = array_append(stores, kind)
     WHERE kind IN (1, 2) AND kind <> ALL (stores)
$$;

INSERT INTO installation (items_since)
SELECT CASE WHEN EXISTS (SELECT FROM sessions) THEN now() + interval '1 day' ELSE '-infinity' END;

CREATE TABLE result_bodies (
    tenant_id   uuid        NOT NULL,
    session_key uuid        NOT NULL,
    id          uuid        NOT NULL,
    sha256      bytea       CHECK (octet_length(sha256) = 32),
    bytes       bigint      NOT NULL DEFAULT 0,
    lines       bigint      NOT NULL DEFAULT 0,
    store       smallint    NOT NULL DEFAULT 0 CHECK (store IN (0, 1, 2)),
    writing     bytea,
    touched_at  timestamptz NOT NULL DEFAULT now(),
    held_in     uuid,
    objects_in  uuid,
    PRIMARY KEY (tenant_id, session_key, id),
    FOREIGN KEY (tenant_id, session_key) REFERENCES sessions (tenant_id, key)
);

-- at is the offset of a chunk's first byte in the body, line the number of the line that this byte belongs to, and
-- in_line says that the line began in an earlier chunk. digest is the SHA-256 of the chunk's bytes, decompressed. codec:
-- 0 as they are, 1 zstd. A chunk of an object begins at object_at and has object_size bytes there.
CREATE TABLE result_chunks (
    tenant_id   uuid     NOT NULL,
    session_key uuid     NOT NULL,
    body_id     uuid     NOT NULL,
    n           integer  NOT NULL CHECK (n >= 0),
    at          bigint   NOT NULL,
    line        bigint   NOT NULL,
    in_line     boolean  NOT NULL,
    size        integer  NOT NULL,
    codec       smallint NOT NULL,
    digest      bytea    NOT NULL CHECK (octet_length(digest) = 32),
    body        bytea,
    object      uuid,
    object_at   bigint,
    object_size integer,
    PRIMARY KEY (tenant_id, session_key, body_id, n),
    CHECK (body IS NULL OR object IS NULL),
    CHECK (body IS NOT NULL OR (object IS NOT NULL AND object_at IS NOT NULL AND object_size IS NOT NULL))
);

ALTER TABLE result_chunks
    ALTER COLUMN body SET STORAGE EXTERNAL;

INSERT INTO result_bodies (tenant_id, session_key, id, sha256, bytes, lines)
SELECT b.tenant_id, b.session_key, gen_random_uuid(), b.sha256, r.bytes, r.lines
  FROM whole_bodies b
  JOIN (SELECT tenant_id, session_key, sha256, max(bytes) AS bytes, max(lines) AS lines
          FROM results
         GROUP BY tenant_id, session_key, sha256) r
    ON r.tenant_id = b.tenant_id AND r.session_key = b.session_key AND r.sha256 = b.sha256;

-- The digest of a chunk that is a whole body is the body's.
INSERT INTO result_chunks (tenant_id, session_key, body_id, n, at, line, in_line, size, codec, digest, body)
SELECT b.tenant_id, b.session_key, b.id, 0, 0, 1, false, b.bytes, w.codec, b.sha256, w.body
  FROM result_bodies b
  JOIN whole_bodies w
    ON w.tenant_id = b.tenant_id AND w.session_key = b.session_key AND w.sha256 = b.sha256;

ALTER TABLE results
    DROP CONSTRAINT results_tenant_id_session_key_sha256_fkey,
    ADD COLUMN body_id uuid;

UPDATE results r
   SET body_id = b.id
  FROM result_bodies b
 WHERE b.tenant_id = r.tenant_id AND b.session_key = r.session_key AND b.sha256 = r.sha256;

SET CONSTRAINTS ALL IMMEDIATE;

DROP TABLE whole_bodies;

DROP INDEX results_body;

CREATE UNIQUE INDEX result_bodies_content ON result_bodies (tenant_id, session_key, sha256);

-- For the collection of what nothing names.
CREATE INDEX result_bodies_touched ON result_bodies (tenant_id, touched_at);

CREATE INDEX result_chunks_object ON result_chunks (tenant_id, object) WHERE object IS NOT NULL;

-- The foreign key below looks results up by their body whenever a body is deleted.
CREATE INDEX results_body ON results (tenant_id, session_key, body_id) WHERE body_id IS NOT NULL;

ALTER TABLE result_chunks
    ADD FOREIGN KEY (tenant_id, session_key, body_id) REFERENCES result_bodies (tenant_id, session_key, id)
    DEFERRABLE INITIALLY DEFERRED;

CREATE INDEX result_bodies_held ON result_bodies (tenant_id, held_in, id) WHERE held_in IS NOT NULL;

ALTER TABLE result_bodies
    ADD FOREIGN KEY (tenant_id, held_in, id) REFERENCES result_bodies (tenant_id, session_key, id)
    DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE results
    ADD FOREIGN KEY (tenant_id, session_key, body_id) REFERENCES result_bodies (tenant_id, session_key, id)
    DEFERRABLE INITIALLY DEFERRED;

-- An uploaded result is part of no message: its seq is 0, and part is the upload's number. Two results may have one
-- place: parts of messages that came in another format than their session's were numbered as the session's format has
-- them, and are numbered as they were appended since. A result is known by its ref alone.
ALTER TABLE results
    ADD CONSTRAINT results_seq_check CHECK (seq >= 0 AND (seq = 0) = (ref LIKE 'u%')),
    DROP CONSTRAINT results_tenant_id_session_key_seq_part_key;

CREATE INDEX results_place ON results (tenant_id, session_key, seq, part);
CREATE INDEX results_tool ON results (tenant_id, session_key, tool_name, seq, part);
CREATE INDEX results_category ON results (tenant_id, session_key, category, seq, part);

-- An upload is the body of a result that arrives in one or several requests before its message exists. While it arrives
-- its body is one that is being written (result_bodies.writing), whose bytes are those that are kept; once it has come in
-- whole, it is a row of results, too. n is its number in its session. Of a finished upload, shown is the text that
-- stands for it in a message, and shown_sha256 is how that message is recognised: the SHA-256 of that text without white
-- space around it, NULL if it is all of the result.
--
-- searched_in are the rules by which the words of an upload are in search_blocks; NULL until a worker has looked at it.
CREATE TABLE uploads (
    tenant_id   uuid        NOT NULL,
    session_key uuid        NOT NULL,
    id          uuid        NOT NULL,
    n           integer     NOT NULL CHECK (n > 0),
    body_id     uuid        NOT NULL,
    key         text,
    tool        text        NOT NULL,
    call_id     text        NOT NULL,
    media_type  text        NOT NULL,
    expected    bytea       CHECK (octet_length(expected) = 32),
    ref         text,
    shown       bytea,
    shown_sha256 bytea      CHECK (octet_length(shown_sha256) = 32),
    created_at  timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    searched_in text,
    searched_in_part boolean NOT NULL DEFAULT false, -- only the beginning is indexed, or nothing of a damaged one
    PRIMARY KEY (tenant_id, session_key, id),
    FOREIGN KEY (tenant_id, session_key) REFERENCES sessions (tenant_id, key),
    FOREIGN KEY (tenant_id, session_key, body_id) REFERENCES result_bodies (tenant_id, session_key, id)
        DEFERRABLE INITIALLY DEFERRED,
    CHECK ((ref IS NULL) = (finished_at IS NULL)),
    CHECK ((shown IS NULL) = (finished_at IS NULL))
);

CREATE UNIQUE INDEX uploads_n ON uploads (tenant_id, session_key, n);
CREATE UNIQUE INDEX uploads_key ON uploads (tenant_id, session_key, key) WHERE key IS NOT NULL;

-- The foreign key looks uploads up by their body whenever a body is deleted.
CREATE INDEX uploads_body ON uploads (tenant_id, session_key, body_id);

-- For the end of those that were given up.
CREATE INDEX uploads_unfinished ON uploads (tenant_id, created_at) WHERE finished_at IS NULL;


CREATE INDEX uploads_searched_in_part ON uploads (tenant_id) WHERE searched_in_part;

-- == Packs of old messages ============================================================================================

-- Old messages move into packs: rows of up to about 512 KiB of messages, compressed together, in which results that are
-- stored elsewhere have left holes (package pack). The row of such a message keeps what is asked for without its bytes;
-- body, view_body, digest, calls and answers are NULL, and shape is the one character 26, so that a view which meets
-- one is noticed. bytes is the size of a body that is in a pack.
--
-- raw is the size of a pack's messages, results how many stored results they had when the pack was made: when there are
-- more, it is made again. offloaded_n is the checkpoint after which nothing was left to pack.
CREATE TABLE message_packs (
    tenant_id   uuid    NOT NULL,
    session_key uuid    NOT NULL,
    first_seq   bigint  NOT NULL CHECK (first_seq > 0),
    last_seq    bigint  NOT NULL,
    raw         bigint  NOT NULL,
    results     integer NOT NULL,
    digest      bytea   NOT NULL CHECK (octet_length(digest) = 32),
    body        bytea   NOT NULL,
    PRIMARY KEY (tenant_id, session_key, first_seq),
    FOREIGN KEY (tenant_id, session_key) REFERENCES sessions (tenant_id, key),
    CHECK (last_seq >= first_seq)
);

ALTER TABLE message_packs
    ALTER COLUMN body SET STORAGE EXTERNAL;


ALTER TABLE messages
    ADD COLUMN bytes integer,
    ALTER COLUMN body DROP NOT NULL,
    ALTER COLUMN calls DROP NOT NULL,
    ALTER COLUMN answers DROP NOT NULL,
    DROP CONSTRAINT messages_check;

ALTER TABLE sessions
    ADD COLUMN offloaded_n integer NOT NULL DEFAULT 0;

CREATE INDEX sessions_offload ON sessions (tenant_id, key) WHERE checkpoint_n > offloaded_n;

-- Which results a checkpoint names is in its manifest and its state. They are there when it is written, and nothing deletes
-- a result but the deletion of its session.
DROP TABLE checkpoint_results;

-- == Session tokens ===================================================================================================

-- A session token lets its holder reach one session for at most a day. It ends with the API key that made it, and with
-- its session: a session that is made anew under the same id has another key.
CREATE TABLE session_tokens (
    tenant_id   uuid        NOT NULL,
    session_key uuid        NOT NULL,
    id          uuid        NOT NULL,
    name        text        NOT NULL DEFAULT '',
    digest      bytea       NOT NULL CHECK (octet_length(digest) = 32),
    last4       text        NOT NULL,
    scopes      text[]      NOT NULL CHECK (scopes @> ARRAY['read'] AND scopes <@ ARRAY['read', 'compact']),
    made_by     uuid        NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now(),
    expires_at  timestamptz NOT NULL CHECK (expires_at <= created_at + interval '24 hours'),
    revoked_at  timestamptz,
    PRIMARY KEY (tenant_id, session_key, id),
    FOREIGN KEY (tenant_id, session_key) REFERENCES sessions (tenant_id, key),
    FOREIGN KEY (tenant_id, made_by) REFERENCES api_keys (tenant_id, id)
);

CREATE UNIQUE INDEX session_tokens_digest ON session_tokens (tenant_id, digest);

CREATE INDEX session_tokens_newest ON session_tokens (tenant_id, session_key, created_at DESC, id DESC);

-- For the report of what left in a time and was read back.
CREATE INDEX checkpoints_created ON checkpoints (tenant_id, created_at);

-- == Verification =====================================================================================================

-- Where the periodic verification of a tenant's sessions is: the key of the last session of this round that was looked
-- at, and what the round and the one before it have read and found.
CREATE TABLE verifications (
    tenant_id    uuid        PRIMARY KEY REFERENCES tenants (id),
    cursor       uuid        NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    started_at   timestamptz NOT NULL DEFAULT now(),
    sessions     bigint      NOT NULL DEFAULT 0,
    bytes        bigint      NOT NULL DEFAULT 0,
    finished_at  timestamptz,
    last_sessions bigint     NOT NULL DEFAULT 0,
    last_bytes   bigint      NOT NULL DEFAULT 0,
    updated_at   timestamptz NOT NULL DEFAULT now()
);

-- What was found in a session when it was last looked at. There is no foreign key to sessions: rows without a session
-- are found, too.
CREATE TABLE findings (
    tenant_id   uuid        NOT NULL REFERENCES tenants (id),
    session_key uuid        NOT NULL,
    n           integer     NOT NULL,
    kind        text        NOT NULL,
    finding     jsonb       NOT NULL,
    found_at    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, session_key, n)
);

CREATE INDEX findings_newest ON findings (tenant_id, found_at DESC, session_key, n);

-- == Floors ===========================================================================================================

-- What a floor is worth. floor_hides is the highest threshold that the compaction could not bring the session below: 0
-- for none, 1 for the trigger, 2 for the hard limit. floor_engine is the version of the engine that found it; the
-- floors from before end with the next append, and are found again if they still hold.
ALTER TABLE sessions
    ADD COLUMN floor_hides  smallint NOT NULL DEFAULT 0,
    ADD COLUMN floor_engine integer  NOT NULL DEFAULT 0;

-- == Workers, and sessions whose compaction fails =====================================================================

-- The processes that work jobs. Each renews its row every second; one that is silent for some seconds is dead, and the
-- others take over its jobs. The rows name no tenant. unbroken is since when a process has not been late: one that was
-- late itself cannot tell whether others are dead or the database was away.
CREATE TABLE workers (
    id         text        PRIMARY KEY,
    started_at timestamptz NOT NULL DEFAULT now(),
    unbroken   timestamptz NOT NULL DEFAULT now(),
    renewed_at timestamptz NOT NULL DEFAULT now(),
    dead_at    timestamptz
);

-- A session whose compaction fails, until one succeeds. failures are its own errors; deaths are workers that died while
-- they compacted it. From quarantined_at on it is tried seldom, alone in its process, or when somebody asks.
CREATE TABLE session_failures (
    tenant_id      uuid        NOT NULL,
    session_key    uuid        NOT NULL,
    run_id         uuid        NOT NULL,
    job_id         bigint      NOT NULL,
    failures       integer     NOT NULL DEFAULT 0,
    deaths         integer     NOT NULL DEFAULT 0,
    trials         integer     NOT NULL DEFAULT 0,
    error          text        NOT NULL,
    since          timestamptz NOT NULL DEFAULT now(),
    failed_at      timestamptz NOT NULL DEFAULT now(),
    next_try_at    timestamptz NOT NULL,
    quarantined_at timestamptz,
    PRIMARY KEY (tenant_id, session_key),
    FOREIGN KEY (tenant_id, session_key) REFERENCES sessions (tenant_id, key)
);

CREATE INDEX session_failures_newest ON session_failures (tenant_id, since DESC, session_key DESC);
CREATE INDEX session_failures_oldest ON session_failures (since, session_key);
CREATE INDEX session_failures_quarantined ON session_failures (quarantined_at, session_key)
    WHERE quarantined_at IS NOT NULL;

CREATE POLICY operators ON session_failures FOR SELECT TO varve_admin USING (true);

-- == What a view is due by, too =======================================================================================

-- A view is due by its bytes, too: pictures have few tokens. A document from before has the default.
ALTER TABLE policies
    ADD COLUMN trigger_bytes bigint NOT NULL GENERATED ALWAYS AS (
        coalesce((document #>> '{trigger_bytes}')::bigint, 16777216)
    ) STORED;

-- == Waiting for what ends ============================================================================================

-- Who waits for a run or an import is told its id when it has ended, however that came. A notification takes a lock of
-- the whole cluster when its transaction commits: nothing that happens with every append may send one.
CREATE FUNCTION notify_ended() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('varve_ended', NEW.id::text);
    RETURN NULL;
END
$$;

CREATE TRIGGER runs_ended AFTER UPDATE OF state ON runs
    FOR EACH ROW WHEN (OLD.state IN ('queued', 'running') AND NEW.state NOT IN ('queued', 'running'))
    EXECUTE FUNCTION notify_ended();

CREATE TRIGGER imports_ended AFTER UPDATE OF state ON imports
    FOR EACH ROW WHEN (OLD.state = 'running' AND NEW.state <> 'running')
    EXECUTE FUNCTION notify_ended();

-- == Versions of checkpoints, storage =================================================================================

-- The engine and the tenant's policy of a session's newest checkpoint, NULL without one, for the filters of
-- recompactions and replays: looked up in checkpoints, they cost 28 microseconds a session. No index has them, so that
-- an append's update stays on its page.
ALTER TABLE sessions
    ADD COLUMN engine_version integer,
    ADD COLUMN policy_version integer;

UPDATE sessions s
   SET engine_version = c.engine_version,
       policy_version = coalesce((SELECT max(v.version)
                                    FROM policy_versions v
                                   WHERE v.tenant_id = s.tenant_id
                                     AND v.session_key = '00000000-0000-0000-0000-000000000000'
                                     AND v.created_at <= c.created_at), 1)
  FROM checkpoints c
 WHERE c.tenant_id = s.tenant_id
   AND c.session_key = s.key
   AND c.n = s.checkpoint_n;

-- Bodies are compressed with lz4 from now on, where the server was built with it: it takes a fifth of the time of pglz
-- for the same size. What is stored stays as it is.
DO $$
BEGIN
    ALTER TABLE messages
        ALTER COLUMN body SET COMPRESSION lz4,
        ALTER COLUMN view_body SET COMPRESSION lz4;
    ALTER TABLE checkpoints
        ALTER COLUMN units SET COMPRESSION lz4,
        ALTER COLUMN manifest SET COMPRESSION lz4;
EXCEPTION
    WHEN feature_not_supported THEN NULL;
END
$$;

-- The defaults wait for a fifth of a table. Of 10^9 messages that is 2 * 10^8 rows that vacuum has not seen: index-only
-- scans look into the table for each, statistics are of a time long past, and one vacuum then takes hours. The rows of
-- sessions are updated all the time and should not leave their pages.
ALTER TABLE messages SET (
    autovacuum_vacuum_insert_scale_factor = 0.02,
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.02
);
ALTER TABLE sessions SET (
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.05
);
ALTER TABLE idempotency SET (
    autovacuum_vacuum_scale_factor = 0.05
);

-- == Jobs =============================================================================================================

-- The order in which compactions and recompactions start. Workers take the available jobs of a queue by priority and
-- then by scheduled_at. Whenever one becomes available, whoever makes it so, its scheduled_at becomes its place: that of
-- the first job in the queue, or the one after the last of its own tenant if that is later. So a tenant with 300
-- waiting jobs takes turns with one that has one, and one tenant alone uses all workers. (This is start-time fair
-- queueing, with a microsecond as the length of every job.)
--
-- Places lie ten years back: in an empty queue the next place is that of now, which is later than any that was taken, as
-- jobs do not come at a million a second. Nothing is locked: jobs that come at the same moment may share a place.

CREATE INDEX job_places ON river_job ((args ->> 'tenant'), queue, priority, scheduled_at)
    WHERE queue IN ('compaction', 'recompaction', 'summary');

-- It reads the jobs of all tenants, which the role that inserts one need not see. A job that failed, or that came too
-- early, waits for its time before it gets a place. River makes such a job available when it ends or is scheduled at
-- most five seconds ahead of its time; its place, which lies in the past, would have it start at once. It is retryable
-- meanwhile. Workers make it available when its time has come.
CREATE FUNCTION job_place() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    back   constant interval := interval '87600 hours';
    first  pg_catalog.timestamptz;
    own    pg_catalog.timestamptz;
    -- The last place that this transaction gave to the tenant: a statement does not see the rows that it changes, and
    -- River makes many jobs available at once. Tenants share 1024 of these.
    given  pg_catalog.text := format('app.place_%s_%s_%s', NEW.queue, NEW.priority,
                          hashtext(NEW.args ->> 'tenant') & 1023);
BEGIN
    IF TG_OP = 'UPDATE' AND NEW.scheduled_at > now()
       AND (OLD.state = 'running'
            OR NEW.scheduled_at = OLD.scheduled_at AND NEW.scheduled_at < now() + interval '10 seconds') THEN
        NEW.state := 'retryable';
        NEW.scheduled_at := least(NEW.scheduled_at, now() + interval '5 seconds');
        RETURN NEW;
    END IF;
    SELECT scheduled_at
      INTO first
      FROM public.river_job
     WHERE state = 'available' AND queue = NEW.queue AND priority = NEW.priority
     ORDER BY scheduled_at
     LIMIT 1;
    SELECT scheduled_at + interval '1 microsecond'
      INTO own
      FROM public.river_job
     WHERE args ->> 'tenant' = NEW.args ->> 'tenant' AND queue = NEW.queue AND priority = NEW.priority
       AND queue IN ('compaction', 'recompaction', 'summary') AND scheduled_at < now() - back
     ORDER BY scheduled_at DESC
     LIMIT 1;
    NEW.scheduled_at := greatest(coalesce(first, now() - back), own,
        nullif(current_setting(given, true), '')::pg_catalog.timestamptz + interval '1 microsecond');
    PERFORM set_config(given, NEW.scheduled_at::pg_catalog.text, true);
    RETURN NEW;
END
$$;

CREATE TRIGGER job_place_inserted BEFORE INSERT ON river_job FOR EACH ROW
    WHEN (NEW.state = 'available' AND NEW.queue IN ('compaction', 'recompaction', 'summary'))
    EXECUTE FUNCTION job_place();

CREATE TRIGGER job_place_updated BEFORE UPDATE OF state, priority ON river_job FOR EACH ROW
    WHEN (NEW.state = 'available' AND NEW.queue IN ('compaction', 'recompaction', 'summary')
          AND (OLD.state <> NEW.state OR OLD.priority <> NEW.priority))
    EXECUTE FUNCTION job_place();

-- All other jobs that start now are due by the database's clock, which workers go by, not by that of the process that
-- inserts them.
CREATE FUNCTION job_now() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    NEW.scheduled_at := least(NEW.scheduled_at, now());
    RETURN NEW;
END
$$;

CREATE TRIGGER job_now BEFORE INSERT ON river_job FOR EACH ROW
    WHEN (NEW.state = 'available' AND NEW.queue NOT IN ('compaction', 'recompaction', 'summary'))
    EXECUTE FUNCTION job_now();

-- All other jobs that start a little later sleep as retryable, until the beat of a worker makes them available. River
-- would make them available at once, and workers would look for them often.
CREATE FUNCTION job_waits() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    NEW.state := 'retryable';
    RETURN NEW;
END
$$;

CREATE TRIGGER job_waits BEFORE UPDATE OF state ON river_job FOR EACH ROW
    WHEN (NEW.state = 'available' AND NEW.queue NOT IN ('compaction', 'recompaction', 'summary')
          AND NEW.scheduled_at > clock_timestamp())
    EXECUTE FUNCTION job_waits();

-- Every job that may start wakes a worker. River itself notifies of what a process inserts, but only once a millisecond,
-- and not of what is retried.
CREATE FUNCTION job_wakes() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pg_notify(TG_TABLE_SCHEMA || '.river_insert', json_build_object('queue', NEW.queue)::text);
    RETURN NULL;
END
$$;

CREATE TRIGGER job_inserted AFTER INSERT ON river_job FOR EACH ROW
    WHEN (NEW.state = 'available')
    EXECUTE FUNCTION job_wakes();

CREATE TRIGGER job_awake AFTER UPDATE OF state ON river_job FOR EACH ROW
    WHEN (NEW.state = 'available' AND OLD.state <> 'available')
    EXECUTE FUNCTION job_wakes();

-- Jobs that a message from the future has put off for longer than any policy waits.
UPDATE river_job
   SET scheduled_at = now()
 WHERE kind = 'compact' AND state = 'scheduled' AND scheduled_at > now() + interval '30 days';

-- == What is due ======================================================================================================

-- What is due is written down where it becomes due, not searched for: an append or a change that takes a session over
-- its trigger writes a row here in its own transaction, and the end of the compaction takes it away. The sweep reads
-- these rows of all tenants, as workers read jobs, and asks again where the job was lost. They are ids only.
CREATE TABLE due_sessions (
    tenant_id   uuid        NOT NULL,
    session_key uuid        NOT NULL,
    level       smallint    NOT NULL,
    job_id      bigint      NOT NULL,
    since       timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, session_key)
);
CREATE INDEX due_sessions_since ON due_sessions (since);

-- What the sweep has to look after for a tenant: "policy" that another default makes sessions due, of which the cursor
-- says how far it has come, "recompaction" and "replay" that there may be a live one, "metadata" that pairs of sessions
-- are not written yet. Which kinds there are is the programs' matter.
CREATE TABLE tenant_tasks (
    tenant_id uuid        NOT NULL,
    kind      text        NOT NULL CHECK (octet_length(kind) BETWEEN 1 AND 64),
    cursor    uuid        NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    since     timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant_id, kind)
);

-- Where the slow rounds through everything are: "audit" through all sessions, for those that are due without a row,
-- "tenants" through all tenants, for what is to be pruned and packed.
CREATE TABLE rounds (
    kind        text        PRIMARY KEY,
    tenant      uuid        NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    session     uuid        NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    finished_at timestamptz
);
INSERT INTO rounds (kind) VALUES ('audit'), ('tenants');

-- Sessions that are due now have no row yet: all tenants are looked through, as after a change of their default.
INSERT INTO tenant_tasks (tenant_id, kind)
SELECT t.id, k.kind
  FROM tenants t, (VALUES ('policy'), ('recompaction'), ('replay'), ('metadata')) k (kind);

-- == Ids that providers gave ==========================================================================================

-- The id that a provider gave a message and that answers keep, which GET /v1/conversations/{id}/items/{item} looks for;
-- NULL for none. Sessions made before items_since may have messages with such an id and without the column: those that
-- are there, and for a day those that a process of the version before makes.
ALTER TABLE messages ADD COLUMN item_id text;
CREATE INDEX messages_item ON messages (tenant_id, session_key, item_id) WHERE item_id IS NOT NULL;
-- Messages that load tools or have a provider's own compaction: wire.FlagState.
CREATE INDEX messages_state ON messages (tenant_id, session_key, seq) WHERE flags & 57344 = 57344;

-- == Statistics =======================================================================================================

-- Where one recompaction has most rows of its table, statistics say that each has, and the foreign key reads all of the
-- tenant's rows to find out that a recompaction has none any more. Averages of 100 rows lead it to the right index.
ALTER TABLE recompaction_sessions ALTER COLUMN recompaction_id SET (n_distinct = -0.01);
ALTER TABLE replay_sessions ALTER COLUMN replay_id SET (n_distinct = -0.01);
ALTER TABLE replay_outcomes ALTER COLUMN replay_id SET (n_distinct = -0.01);
ALTER TABLE import_lines ALTER COLUMN import_id SET (n_distinct = -0.01);

-- Lists whose pages read more than they show: the lines of an import that have one outcome.
CREATE INDEX import_lines_outcome ON import_lines (tenant_id, import_id, outcome, n);
DROP INDEX import_lines_rejected;

-- == Summaries by models ==============================================================================================

-- The summaries that checkpoints wait for: written by the transaction that commits the checkpoint, answered by the job
-- that asks the model. request is what the model is asked, as JSON in a zstd frame, until it is answered or given up;
-- answer_keys are the rows of model_answers that the answer is made of.
-- offered says whether a compaction has had the answer, or the failure, and could take it in. A failed summary keeps its
-- request: it is asked again. The digest of a request does not say which model is asked: model is the operator's name for it.
CREATE TABLE summaries (
    tenant_id    uuid        NOT NULL,
    session_key  uuid        NOT NULL,
    model        text        NOT NULL,
    digest       bytea       NOT NULL CHECK (octet_length(digest) = 32),
    first_seq    bigint      NOT NULL,
    last_seq     bigint      NOT NULL,
    checkpoint_n integer     NOT NULL,
    state        text        NOT NULL DEFAULT 'due'
                             CHECK (state IN ('due', 'asking', 'answered', 'failed', 'superseded')),
    request      bytea,
    attempts     integer     NOT NULL DEFAULT 0,
    retain       bytea,
    summary      bytea,
    flags        text[]      NOT NULL DEFAULT '{}',
    provenance   jsonb,
    answer_keys  bytea[]     NOT NULL DEFAULT '{}',
    reason       text,
    ask_after    timestamptz,
    created_at   timestamptz NOT NULL DEFAULT now(),
    asked_at     timestamptz,
    finished_at  timestamptz,
    offered      boolean     NOT NULL DEFAULT false,
    PRIMARY KEY (tenant_id, session_key, model, digest),
    FOREIGN KEY (tenant_id, session_key) REFERENCES sessions (tenant_id, key),
    CONSTRAINT summaries_request_check CHECK (state NOT IN ('due', 'asking') OR request IS NOT NULL),
    CONSTRAINT summaries_check1 CHECK ((summary IS NOT NULL) = (state = 'answered'))
);

CREATE INDEX summaries_pending ON summaries (tenant_id, session_key) WHERE NOT offered AND state IN ('answered', 'failed');

-- What single calls of models were answered, so that nothing is paid twice. Without an answer, lease is the call that
-- is under way, and reserved_… what it has reserved of the budget of its day. A call without a session is of a request
-- that has none: its row goes after a time.
CREATE TABLE model_answers (
    tenant_id         uuid        NOT NULL,
    key               bytea       NOT NULL CHECK (octet_length(key) = 32),
    session_key       uuid,
    provider          text        NOT NULL,
    model             text        NOT NULL,
    prompt_version    text        NOT NULL,
    digest            bytea       NOT NULL CHECK (octet_length(digest) = 32),
    answer            bytea,
    answered_by       text,
    input_tokens      bigint      NOT NULL DEFAULT 0,
    cached_tokens     bigint      NOT NULL DEFAULT 0,
    output_tokens     bigint      NOT NULL DEFAULT 0,
    cost_micros       bigint      NOT NULL DEFAULT 0,
    lease             uuid,
    leased_until      timestamptz,
    reserved_day      date        NOT NULL,
    reserved_input    bigint      NOT NULL,
    reserved_output   bigint      NOT NULL,
    reserved_cost     bigint      NOT NULL,
    created_at        timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, key),
    FOREIGN KEY (tenant_id, session_key) REFERENCES sessions (tenant_id, key),
    CHECK ((answer IS NULL) = (lease IS NOT NULL)),
    CHECK ((lease IS NULL) = (leased_until IS NULL))
);
CREATE INDEX model_answers_session ON model_answers (tenant_id, session_key);
CREATE INDEX model_answers_unbound ON model_answers (tenant_id, created_at) WHERE session_key IS NULL;

-- What a tenant's calls of a day, in UTC, have used or reserved: of each model, and of all of them under the model ''.
-- A call that nobody has settled, because its process died, stays counted with all that it reserved.
CREATE TABLE model_spending (
    tenant_id     uuid   NOT NULL,
    day           date   NOT NULL,
    model         text   NOT NULL,
    calls         bigint NOT NULL,
    input_tokens  bigint NOT NULL,
    output_tokens bigint NOT NULL,
    cost_micros   bigint NOT NULL,
    PRIMARY KEY (tenant_id, day, model)
);

-- A checkpoint whose summaries are to be made anew: nothing begins with it any more, and its body goes with the next.
ALTER TABLE checkpoints
    ADD COLUMN forgotten boolean NOT NULL DEFAULT false;

-- == Pins =============================================================================================================

-- What callers pin of a session: every checkpoint has its text verbatim. ref names a message (m17), a part of one
-- (m17.2) or a result (r17.2-9f3a); part is -1 for a whole message. The log never changes, so the text is kept here: a
-- compaction does not read messages for it that have left the view long ago.
CREATE TABLE session_pins (
    tenant_id   uuid        NOT NULL,
    session_key uuid        NOT NULL,
    ref         text        NOT NULL CHECK (octet_length(ref) BETWEEN 2 AND 64),
    seq         bigint      NOT NULL CHECK (seq > 0),
    part        integer     NOT NULL CHECK (part >= -1),
    text        bytea       NOT NULL,
    tokens      integer     NOT NULL CHECK (tokens >= 0),
    note        text        NOT NULL DEFAULT '',
    created_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, session_key, ref),
    FOREIGN KEY (tenant_id, session_key) REFERENCES sessions (tenant_id, key)
);

-- == Runs =============================================================================================================

-- A session that nobody uses is compacted (idle), a damaged checkpoint is made anew (damage), and an answer of a model
-- takes the place of the summary that stood in for it (summary).
-- Runs that have not ended: one whose job is gone gets another.
CREATE INDEX runs_unfinished ON runs (tenant_id) WHERE state IN ('queued', 'running');

ALTER TABLE runs
    DROP CONSTRAINT runs_cause_check,
    ADD CONSTRAINT runs_cause_check CHECK (cause IN ('threshold', 'hard', 'idle', 'manual', 'sweep', 'follow_up',
        'recompaction', 'restore', 'damage', 'summary'));

-- == Changed messages =================================================================================================

-- A message that a caller has changed, or that stood behind one, is removed and superseded: it stays in the log, to the
-- byte, and out of every view. superseded_by is the seq of the message that has its client id now, or that of the
-- removal if none has. A client id names the message that had it last, also one that was removed since: an append that
-- is sent again must not bring it back.
ALTER TABLE messages ADD COLUMN superseded_by bigint;

DROP INDEX messages_client_id;
CREATE UNIQUE INDEX messages_client_id ON messages (tenant_id, session_key, client_id)
    WHERE client_id IS NOT NULL AND (superseded_by IS NULL OR superseded_by = removed_seq);
CREATE INDEX messages_superseded ON messages (tenant_id, session_key, client_id)
    WHERE client_id IS NOT NULL AND superseded_by > removed_seq;

-- == Rules of sessions and messages ===================================================================================

-- PostgreSQL reads each CHECK of a table from its text again in every statement that writes to it, which was a tenth of
-- an append. The rules of sessions and messages are triggers of the columns that they are about, none of which an
-- append sets, with the names of the CHECKs that they replace. What is inserted into messages is checked by a policy,
-- which PostgreSQL keeps parsed; it binds every role that row-level security binds. A fork takes over messages whose
-- bytes are in packs, with the packs.
--
-- A trigger that fires before an update has PostgreSQL lock each row of every update of its table, and write that to the
-- WAL, whichever columns it is for. One that fires afterwards costs nothing unless its WHEN is true.
CREATE FUNCTION refuse_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'new row for relation "%" violates check constraint "%"', TG_TABLE_NAME, TG_NAME
        USING ERRCODE = 'check_violation', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME, CONSTRAINT = TG_NAME;
END
$$;

ALTER TABLE sessions
    DROP CONSTRAINT sessions_id_check,
    DROP CONSTRAINT sessions_window_tokens_check,
    DROP CONSTRAINT sessions_overhead_tokens_check,
    DROP CONSTRAINT sessions_window_source_check,
    DROP CONSTRAINT sessions_wake_check,
    DROP CONSTRAINT sessions_calibration_check;

CREATE TRIGGER sessions_id_check
    AFTER INSERT OR UPDATE OF id ON sessions
    FOR EACH ROW
    WHEN (octet_length(NEW.id) < 1 OR octet_length(NEW.id) > 255)
    EXECUTE FUNCTION refuse_row();
CREATE TRIGGER sessions_window_tokens_check
    AFTER INSERT OR UPDATE OF window_tokens ON sessions
    FOR EACH ROW
    WHEN (NEW.window_tokens <= 0)
    EXECUTE FUNCTION refuse_row();
CREATE TRIGGER sessions_overhead_tokens_check
    AFTER INSERT OR UPDATE OF overhead_tokens ON sessions
    FOR EACH ROW
    WHEN (NEW.overhead_tokens < 0)
    EXECUTE FUNCTION refuse_row();
CREATE TRIGGER sessions_window_source_check
    AFTER INSERT OR UPDATE OF window_source ON sessions
    FOR EACH ROW
    WHEN (NEW.window_source NOT IN ('request', 'model', 'default'))
    EXECUTE FUNCTION refuse_row();
CREATE TRIGGER sessions_armed_threshold_check
    AFTER INSERT OR UPDATE OF armed_threshold ON sessions
    FOR EACH ROW
    WHEN (NEW.armed_threshold < 1 OR NEW.armed_threshold > 3)
    EXECUTE FUNCTION refuse_row();
CREATE TRIGGER sessions_calibration_check
    AFTER INSERT OR UPDATE OF calibration ON sessions
    FOR EACH ROW
    WHEN (NEW.calibration < 0.5 OR NEW.calibration > 20)
    EXECUTE FUNCTION refuse_row();

ALTER TABLE messages
    DROP CONSTRAINT messages_seq_check,
    DROP CONSTRAINT messages_tokens_check,
    DROP CONSTRAINT messages_check1,
    DROP CONSTRAINT messages_check2,
    DROP CONSTRAINT messages_view_tokens_check;

CREATE POLICY as_appended ON messages AS RESTRICTIVE FOR INSERT
    WITH CHECK (seq > 0
                AND tokens >= 0
                AND (body IS NULL) = (shape = E'\x1a')
                AND (body IS NULL) = (bytes IS NOT NULL)
                AND (removed_at IS NULL) = (removed_seq IS NULL)
                AND (removed_seq > seq) IS NOT FALSE
                AND (superseded_by IS NULL OR (superseded_by >= removed_seq) IS TRUE)
                AND ((view_body IS NULL) = (view_tokens IS NULL) OR body IS NULL)
                AND (view_tokens >= 0) IS NOT FALSE);

CREATE TRIGGER messages_seq_check
    AFTER UPDATE OF seq ON messages
    FOR EACH ROW
    WHEN (NEW.seq <= 0)
    EXECUTE FUNCTION refuse_row();
CREATE TRIGGER messages_tokens_check
    AFTER UPDATE OF tokens ON messages
    FOR EACH ROW
    WHEN (NEW.tokens < 0)
    EXECUTE FUNCTION refuse_row();
CREATE TRIGGER messages_removed_check
    AFTER UPDATE OF removed_at, removed_seq ON messages
    FOR EACH ROW
    WHEN (NEW.removed_seq <= NEW.seq OR (NEW.removed_at IS NULL) <> (NEW.removed_seq IS NULL))
    EXECUTE FUNCTION refuse_row();
CREATE TRIGGER messages_view_check
    AFTER UPDATE OF body, view_body, view_tokens ON messages
    FOR EACH ROW
    WHEN (NEW.view_tokens < 0
       OR ((NEW.view_body IS NULL) <> (NEW.view_tokens IS NULL) AND NEW.body IS NOT NULL))
    EXECUTE FUNCTION refuse_row();
CREATE TRIGGER messages_packed_check
    AFTER UPDATE OF body, shape, bytes ON messages
    FOR EACH ROW
    WHEN ((NEW.body IS NULL) <> (NEW.shape = E'\x1a')
       OR (NEW.body IS NULL) <> (NEW.bytes IS NOT NULL))
    EXECUTE FUNCTION refuse_row();
CREATE TRIGGER messages_superseded_check
    AFTER UPDATE OF superseded_by, removed_seq ON messages
    FOR EACH ROW
    WHEN (NEW.superseded_by IS NOT NULL AND (NEW.superseded_by >= NEW.removed_seq) IS NOT TRUE)
    EXECUTE FUNCTION refuse_row();

-- Whoever is not the owner of the table may not put bytes of messages in, whatever login it is.
CREATE FUNCTION refuse_new_body() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF pg_has_role(current_user, (SELECT relowner FROM pg_class WHERE oid = TG_RELID), 'USAGE') THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'the bytes of a message are written once';
END
$$;

CREATE TRIGGER messages_body
    AFTER UPDATE OF body, view_body, bytes ON messages
    FOR EACH ROW
    WHEN (NEW.body IS NOT NULL)
    EXECUTE FUNCTION refuse_new_body();

-- == The audit trail ==================================================================================================

-- Who did what: a row for each administrative or destructive action, written by the transaction that did it, in a chain
-- for each tenant. The chain of the nil tenant has what operators do to tenants. The trigger gives a row its place, its
-- time, its login and its hash, under the lock of the chain's head, so that a role that serves can write the next row and
-- no other.
--
-- A row about an erased session has lost what it said of it: its place, who did what kind of thing when, and its hashes
-- stay. blanked_by is the row that says so, which has the number of all rows that it blanked. content is the hash of what
-- may be lost, and hash is that of all else and of content: it holds for a blanked row as well.
CREATE TABLE audit_trail (
    tenant_id uuid        NOT NULL,
    n         bigint      NOT NULL CHECK (n > 0),
    at        timestamptz NOT NULL,
    login     text        NOT NULL,
    actor     text        NOT NULL CHECK (octet_length(actor) BETWEEN 1 AND 64),
    actor_id  uuid,
    request   text        CHECK (octet_length(request) <= 255),
    address   text        CHECK (octet_length(address) <= 255),
    action    text        NOT NULL CHECK (octet_length(action) BETWEEN 1 AND 64),
    object    text        NOT NULL CHECK (octet_length(object) BETWEEN 1 AND 64),
    object_id text        CHECK (octet_length(object_id) <= 1024),
    detail    json,
    before    json,
    after     json,
    content   bytea       NOT NULL,
    previous  bytea       NOT NULL,
    hash      bytea       NOT NULL,
    blanked_by bigint,
    PRIMARY KEY (tenant_id, n)
);

CREATE INDEX audit_trail_at ON audit_trail (tenant_id, at, n);
CREATE INDEX audit_trail_action ON audit_trail (tenant_id, action, n);
CREATE INDEX audit_trail_actor ON audit_trail (tenant_id, actor_id, n);
CREATE INDEX audit_trail_object ON audit_trail (tenant_id, object_id, n);

-- The last row of each chain: it shows whether rows are missing at the end.
CREATE TABLE audit_heads (
    tenant_id uuid        PRIMARY KEY,
    n         bigint      NOT NULL,
    at        timestamptz NOT NULL,
    hash      bytea       NOT NULL
);

-- The hash of what a row says that an erasure may blank: SHA-256 of these columns as text, each behind its length in 4
-- bytes, -1 for NULL. audit.Entry.ContentSum in Go computes the same.
CREATE FUNCTION audit_content(t audit_trail) RETURNS bytea LANGUAGE plpgsql IMMUTABLE
    SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    field text;
    bytes bytea;
    sum   bytea := '';
BEGIN
    FOREACH field IN ARRAY ARRAY[t.object_id, t.detail::text, t.before::text, t.after::text] LOOP
        bytes := convert_to(field, 'UTF8');
        sum := sum || int4send(coalesce(octet_length(bytes), -1)) || coalesce(bytes, '');
    END LOOP;
    RETURN sha256(sum);
END
$$;

-- The hash of a row: SHA-256 of the hash before it, the hash of its content, and every other column as in audit_content.
-- audit.Entry.Sum in Go computes the same.
CREATE FUNCTION audit_hash(t audit_trail) RETURNS bytea LANGUAGE plpgsql IMMUTABLE
    SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    field text;
    bytes bytea;
    sum   bytea := t.previous || t.content;
BEGIN
    FOREACH field IN ARRAY ARRAY[
        t.tenant_id::text, t.n::text, (extract(epoch FROM t.at) * 1000000)::bigint::text, t.login, t.actor,
        t.actor_id::text, t.request, t.address, t.action, t.object]
    LOOP
        bytes := convert_to(field, 'UTF8');
        sum := sum || int4send(coalesce(octet_length(bytes), -1)) || coalesce(bytes, '');
    END LOOP;
    RETURN sha256(sum);
END
$$;

CREATE FUNCTION audit_chain() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    head public.audit_heads;
BEGIN
    INSERT INTO public.audit_heads (tenant_id, n, at, hash)
    VALUES (NEW.tenant_id, 0, clock_timestamp(), decode(repeat('00', 32), 'hex'))
    ON CONFLICT DO NOTHING;
    SELECT *
      INTO STRICT head
      FROM public.audit_heads
     WHERE tenant_id = NEW.tenant_id
       FOR NO KEY UPDATE;
    NEW.n := head.n + 1;
    NEW.at := greatest(head.at, clock_timestamp());
    NEW.login := session_user;
    NEW.previous := head.hash;
    NEW.content := public.audit_content(NEW);
    NEW.hash := public.audit_hash(NEW);
    UPDATE public.audit_heads
       SET n = NEW.n, at = NEW.at, hash = NEW.hash
     WHERE tenant_id = NEW.tenant_id;
    RETURN NEW;
END
$$;

CREATE TRIGGER audit_trail_chain BEFORE INSERT ON audit_trail
    FOR EACH ROW EXECUTE FUNCTION audit_chain();

-- Nobody changes what is written by mistake, the owner of the tables included. Who disables the triggers is found by
-- varve verify.
CREATE FUNCTION audit_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit trail only grows: its rows are never changed and never removed'
        USING ERRCODE = 'insufficient_privilege';
END
$$;

CREATE TRIGGER audit_trail_not_emptied BEFORE TRUNCATE ON audit_trail
    FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse();
CREATE TRIGGER audit_heads_grow BEFORE UPDATE ON audit_heads
    FOR EACH ROW WHEN (NEW.n <> OLD.n + 1) EXECUTE FUNCTION audit_refuse();
CREATE TRIGGER audit_heads_not_emptied BEFORE TRUNCATE ON audit_heads
    FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse();

CREATE FUNCTION audit_blanks() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    IF OLD.blanked_by IS NULL AND NEW.blanked_by > OLD.n
       AND NEW.detail IS NULL AND NEW.before IS NULL AND NEW.after IS NULL
       AND (NEW.tenant_id, NEW.n, NEW.at, NEW.login, NEW.actor, NEW.action, NEW.object, NEW.content, NEW.previous, NEW.hash)
         = (OLD.tenant_id, OLD.n, OLD.at, OLD.login, OLD.actor, OLD.action, OLD.object, OLD.content, OLD.previous, OLD.hash)
       AND (NEW.actor_id, NEW.request, NEW.address) IS NOT DISTINCT FROM (OLD.actor_id, OLD.request, OLD.address) THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'the audit trail only grows: its rows are never changed and never removed'
        USING ERRCODE = 'insufficient_privilege';
END
$$;

CREATE TRIGGER audit_trail_blanks BEFORE UPDATE ON audit_trail
    FOR EACH ROW EXECUTE FUNCTION audit_blanks();

-- Blanks the rows about a session that is gone, and those of others that name it. The next row of the trail must say so,
-- with what this returns: the first row, and how many there are. It takes the lock of the chain's head.
CREATE FUNCTION audit_blank(tenant uuid, id text, key uuid)
    RETURNS TABLE (first bigint, blanked bigint)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
#variable_conflict use_column
DECLARE
    next bigint;
BEGIN
    IF tenant IS DISTINCT FROM nullif(current_setting('app.tenant_id', true), '')::pg_catalog.uuid THEN
        RAISE EXCEPTION 'it is the transaction''s tenant whose trail may be blanked'
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    SELECT n + 1
      INTO next
      FROM public.audit_heads
     WHERE tenant_id = tenant
       FOR NO KEY UPDATE;
    IF EXISTS (SELECT FROM public.sessions s WHERE s.tenant_id = tenant AND s.id = audit_blank.id) THEN
        RAISE EXCEPTION 'the session is there: nothing that was done to it is forgotten'
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN QUERY
    WITH rows AS (
        UPDATE public.audit_trail t
           SET object_id = CASE WHEN t.object = 'session' AND t.object_id = audit_blank.id
                                THEN audit_blank.key::pg_catalog.text
                                WHEN t.object = 'session' -- a fork that is there
                                THEN coalesce((SELECT s.key::pg_catalog.text
                                                 FROM public.sessions s
                                                WHERE s.tenant_id = tenant AND s.id = t.object_id), t.object_id)
                                ELSE t.object_id END,
               detail = NULL, before = NULL, after = NULL, blanked_by = next
         WHERE t.tenant_id = tenant
           AND t.blanked_by IS NULL
           AND (t.object_id = audit_blank.id AND t.object = 'session'
                OR t.action = 'session.fork' AND t.detail ->> 'from' = audit_blank.id
                OR t.action IN ('import.start', 'import.resume') AND t.detail ->> 'session' = audit_blank.id
                OR t.action IN ('recompaction.start', 'replay.start')
                   AND ((t.detail -> 'filter' -> 'sessions')::pg_catalog.jsonb ? audit_blank.id
                        OR t.detail -> 'filter' ->> 'forked_from' = audit_blank.id))
        RETURNING t.n
    )
    SELECT coalesce(min(n), 0), count(*)
      FROM rows;
END
$$;

-- Blanks the rows of recompactions that were for sessions with some metadata, which no session may have, as audit_blank does.
CREATE FUNCTION audit_blank_subject(tenant uuid, wanted jsonb)
    RETURNS TABLE (first bigint, blanked bigint)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
#variable_conflict use_column
DECLARE
    next bigint;
BEGIN
    IF tenant IS DISTINCT FROM nullif(current_setting('app.tenant_id', true), '')::pg_catalog.uuid THEN
        RAISE EXCEPTION 'it is the transaction''s tenant whose trail may be blanked'
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    SELECT n + 1
      INTO next
      FROM public.audit_heads
     WHERE tenant_id = tenant
       FOR NO KEY UPDATE;
    IF EXISTS (SELECT FROM public.sessions s WHERE s.tenant_id = tenant AND s.metadata @> wanted) THEN
        RAISE EXCEPTION 'sessions with this metadata are there: nothing that was done to them is forgotten'
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN QUERY
    WITH rows AS (
        UPDATE public.audit_trail t
           SET detail = NULL, before = NULL, after = NULL, blanked_by = next
         WHERE t.tenant_id = tenant
           AND t.blanked_by IS NULL
           AND t.action IN ('recompaction.start', 'replay.start')
           AND (t.detail -> 'filter' -> 'metadata')::pg_catalog.jsonb @> wanted
        RETURNING t.n
    )
    SELECT coalesce(min(n), 0), count(*)
      FROM rows;
END
$$;

-- Blanks the rows of the operators' trail that have the name of a tenant that is gone, as audit_blank does.
CREATE FUNCTION audit_blank_tenant(tenant uuid)
    RETURNS TABLE (first bigint, blanked bigint)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
#variable_conflict use_column
DECLARE
    operators constant pg_catalog.uuid := '00000000-0000-0000-0000-000000000000';
    next bigint;
BEGIN
    IF operators IS DISTINCT FROM nullif(current_setting('app.tenant_id', true), '')::pg_catalog.uuid THEN
        RAISE EXCEPTION 'it is the transaction''s tenant whose trail may be blanked'
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    SELECT n + 1
      INTO next
      FROM public.audit_heads
     WHERE tenant_id = operators
       FOR NO KEY UPDATE;
    IF EXISTS (SELECT FROM public.tenants t WHERE t.id = audit_blank_tenant.tenant) THEN
        RAISE EXCEPTION 'the tenant is there: nothing that was done to it is forgotten'
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN QUERY
    WITH rows AS (
        UPDATE public.audit_trail t
           SET detail = NULL, before = NULL, after = NULL, blanked_by = next
         WHERE t.tenant_id = operators
           AND t.blanked_by IS NULL
           AND t.object_id = audit_blank_tenant.tenant::pg_catalog.text
           AND t.action = 'tenant.create'
        RETURNING t.n
    )
    SELECT coalesce(min(n), 0), count(*)
      FROM rows;
END
$$;

-- A chain is kept as long as its tenant is there; that of the operators always.
CREATE FUNCTION audit_keep() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    IF OLD.tenant_id <> '00000000-0000-0000-0000-000000000000'
       AND NOT EXISTS (SELECT FROM public.tenants WHERE id = OLD.tenant_id) THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'the audit trail only grows: its rows are never changed and never removed'
        USING ERRCODE = 'insufficient_privilege';
END
$$;

CREATE TRIGGER audit_heads_kept BEFORE DELETE ON audit_heads
    FOR EACH ROW EXECUTE FUNCTION audit_keep();

-- == Retention of the trail ===========================================================================================

-- A row is kept as long as its tenant is there, unless a later row audit.prune says that it was removed.
CREATE FUNCTION audit_keep_row() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    IF EXISTS (SELECT
                 FROM public.audit_trail
                WHERE tenant_id = OLD.tenant_id AND action = 'audit.prune' AND n > OLD.n
                  AND (detail ->> 'through')::pg_catalog.int8 >= OLD.n)
       OR OLD.tenant_id <> '00000000-0000-0000-0000-000000000000'
          AND NOT EXISTS (SELECT FROM public.tenants WHERE id = OLD.tenant_id) THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'the audit trail only grows: its rows are never changed and never removed'
        USING ERRCODE = 'insufficient_privilege';
END
$$;

CREATE TRIGGER audit_trail_kept BEFORE DELETE ON audit_trail
    FOR EACH ROW EXECUTE FUNCTION audit_keep_row();

-- Removes the oldest rows of a tenant's trail, at most some of them, that are older than they are to be kept, writes
-- the row audit.prune, which has the number and the hash of the last row that went, and returns how many it has removed.
-- The trail begins with the row behind that one, whose previous is this hash. It begins when the oldest is a day older
-- than it must be, so that there are not as many rows that say so as rows that were removed, and for no such rows alone.
-- It stops before a row that is not as it was written: what shows that somebody changed it stays. A legal hold of the
-- tenant keeps all rows. The lock of the tenant's row lets one of two calls wait; that of the chain's head, which the new
-- row takes, keeps rows from being blanked meanwhile.
CREATE FUNCTION audit_prune(tenant uuid, kept interval, most integer) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    through bigint;
    removed bigint;
    others  boolean;
    ended   pg_catalog.bytea;
BEGIN
    IF tenant IS DISTINCT FROM nullif(current_setting('app.tenant_id', true), '')::pg_catalog.uuid THEN
        RAISE EXCEPTION 'it is the transaction''s tenant whose trail may be shortened'
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF kept IS NULL OR kept < interval '30 days' OR most IS NULL THEN
        RAISE EXCEPTION 'rows of the audit trail are kept for 30 days at least'
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    PERFORM
       FROM (SELECT at
               FROM public.audit_trail
              WHERE tenant_id = tenant
              ORDER BY n
              LIMIT 1) oldest
      WHERE oldest.at < now() - kept - interval '1 day';
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    PERFORM
       FROM public.tenants
      WHERE id = tenant AND hold IS NULL
        FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    WITH oldest AS (
        SELECT (entry).n, (entry).action,
               CASE
               WHEN lag((entry).n) OVER by_n IS NOT NULL
               THEN (entry).n = lag((entry).n) OVER by_n + 1 AND (entry).previous = lag((entry).hash) OVER by_n
               WHEN (entry).n = 1
               THEN (entry).previous = decode(repeat('00', 32), 'hex')
               ELSE EXISTS (SELECT
                              FROM public.audit_trail p
                             WHERE p.tenant_id = tenant AND p.action = 'audit.prune'
                               AND p.detail ->> 'through' = ((entry).n - 1)::pg_catalog.text
                               AND p.detail ->> 'hash' = encode((entry).previous, 'hex'))
               END
               AND (entry).hash = public.audit_hash(entry)
               AND ((entry).blanked_by IS NOT NULL OR (entry).content = public.audit_content(entry))
               AND (entry).at < now() - kept AS removable
          FROM (SELECT t AS entry
                  FROM public.audit_trail t
                 WHERE t.tenant_id = tenant
                 ORDER BY t.n
                 LIMIT most) first
        WINDOW by_n AS (ORDER BY (entry).n)
    )
    SELECT max(n), count(*), bool_or(action <> 'audit.prune')
      INTO through, removed, others
      FROM oldest
     WHERE n < (SELECT coalesce(min(n) FILTER (WHERE NOT removable), max(n) + 1) FROM oldest);
    IF others IS NOT TRUE THEN
        RETURN 0;
    END IF;
    SELECT hash
      INTO STRICT ended
      FROM public.audit_trail
     WHERE tenant_id = tenant AND n = through;
    INSERT INTO public.audit_trail (tenant_id, actor, action, object, object_id, detail)
    VALUES (tenant, 'varve', 'audit.prune', 'tenant', tenant::pg_catalog.text,
            format('{"through":%s,"hash":"%s","removed":%s}', through, encode(ended, 'hex'), removed)::pg_catalog.json);
    DELETE FROM public.audit_trail WHERE tenant_id = tenant AND n <= through;
    RETURN removed;
END
$$;

-- == Usage ============================================================================================================

-- What was stored, served and compacted, by tenant and day, and by session. messages, bytes and tokens are of what was
-- appended, also of what was removed since; compactions are checkpoints, restored ones included. A session's row says up
-- to which seq and checkpoint it is counted: what is behind that is counted later, and only once.
CREATE TABLE usage_days (
    tenant_id     uuid   NOT NULL REFERENCES tenants (id),
    day           date   NOT NULL,
    messages      bigint NOT NULL DEFAULT 0,
    bytes         bigint NOT NULL DEFAULT 0,
    tokens        bigint NOT NULL DEFAULT 0,
    views         bigint NOT NULL DEFAULT 0,
    tokens_served bigint NOT NULL DEFAULT 0,
    tokens_saved  bigint NOT NULL DEFAULT 0,
    read_backs    bigint NOT NULL DEFAULT 0,
    compactions   bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, day)
);

-- appended_at is when a session's last append was, over_window and read_at are as the ledger has last seen them; read_at
-- to the hour, the epoch if the session was not read. An index on the session's own columns would make every append write
-- to all indexes of the row. away says that what was said in a session lies in an archive, or is on its way there;
-- thawed_at is when the last use brought it back, and back_at when anything did.
--
-- The list of sessions that were not read for the longest time is in the order of days. With an index on the time itself,
-- each read that is noted would write to every index of the row; a day changes once a day.
CREATE TABLE usage_sessions (
    tenant_id     uuid    NOT NULL,
    session_key   uuid    NOT NULL,
    counted_seq   bigint  NOT NULL DEFAULT 0,
    counted_n     integer NOT NULL DEFAULT 0,
    messages      bigint  NOT NULL DEFAULT 0,
    bytes         bigint  NOT NULL DEFAULT 0,
    tokens        bigint  NOT NULL DEFAULT 0,
    views         bigint  NOT NULL DEFAULT 0,
    tokens_served bigint  NOT NULL DEFAULT 0,
    tokens_saved  bigint  NOT NULL DEFAULT 0,
    read_backs    bigint  NOT NULL DEFAULT 0,
    compactions   bigint  NOT NULL DEFAULT 0,
    appended_at   timestamptz,
    over_window   boolean NOT NULL DEFAULT false,
    read_at       timestamptz NOT NULL DEFAULT 'epoch',
    away          boolean NOT NULL DEFAULT false,
    thawed_at     timestamptz,
    back_at       timestamptz,
    read_on       date    NOT NULL GENERATED ALWAYS AS ((read_at AT TIME ZONE 'UTC')::date) STORED,
    PRIMARY KEY (tenant_id, session_key),
    FOREIGN KEY (tenant_id, session_key) REFERENCES sessions (tenant_id, key)
) WITH (fillfactor = 85);

CREATE INDEX usage_sessions_appended ON usage_sessions (tenant_id, appended_at DESC, session_key DESC)
    WHERE appended_at IS NOT NULL;

-- Sessions to which nothing was ever appended, in the order in which they were made.
CREATE INDEX usage_sessions_empty ON usage_sessions (tenant_id, session_key) WHERE appended_at IS NULL;

-- The sessions that may be frozen, those first that have slept the longest.
CREATE INDEX usage_sessions_asleep ON usage_sessions (tenant_id, greatest(appended_at, thawed_at)) WHERE NOT away;

-- Operators list the sessions of all tenants.
CREATE INDEX usage_sessions_tokens ON usage_sessions (tokens DESC, session_key DESC);
CREATE INDEX usage_sessions_bytes ON usage_sessions (bytes DESC, session_key DESC);
CREATE INDEX usage_sessions_idle ON usage_sessions (appended_at, session_key) WHERE appended_at IS NOT NULL;
CREATE INDEX usage_sessions_over ON usage_sessions (tokens DESC, session_key DESC) WHERE over_window;
CREATE INDEX usage_sessions_unread ON usage_sessions (read_on, session_key);

CREATE POLICY operators ON usage_sessions FOR SELECT TO varve_admin USING (true);

-- They see what all tenants have used together, by day.
CREATE INDEX usage_days_day ON usage_days (day);
CREATE INDEX model_spending_day ON model_spending (day) WHERE model = '';
CREATE POLICY operators ON usage_days FOR SELECT TO varve_admin USING (true);
CREATE POLICY operators ON model_spending FOR SELECT TO varve_admin USING (true);

-- == Forks ============================================================================================================

-- The last seq of the session's log before the transaction that made the checkpoint: a view as of a seq begins with the
-- newest checkpoint that was made before that seq was taken. NULL in rows of older programs, which go by their time.
ALTER TABLE checkpoints ADD COLUMN made_after bigint;

-- The last seq when the view was last changed other than at its end: by a checkpoint, or for a reader with a bound.
ALTER TABLE sessions ADD COLUMN unbound_seq bigint NOT NULL DEFAULT 0;
UPDATE sessions SET unbound_seq = last_seq WHERE checkpoint_n > 0;

-- What a session is a fork of: the id that the other session had, the seq through which they share their log, and the
-- checkpoint with which the fork began.
ALTER TABLE sessions ADD COLUMN forked_from text, ADD COLUMN forked_seq bigint, ADD COLUMN forked_checkpoint integer;
CREATE INDEX sessions_forked ON sessions (tenant_id, forked_from, created_at DESC, key DESC)
    WHERE forked_from IS NOT NULL;

-- == Keys =============================================================================================================

-- What a key may do, the key that it takes the place of, and when it was used, as of some minutes ago. Keys of before
-- may do everything, as do those that a program of before makes.
ALTER TABLE api_keys
    ADD COLUMN scopes text[] NOT NULL DEFAULT ARRAY['sessions:read', 'sessions:write', 'results:read', 'compact',
        'policy', 'export', 'erase', 'admin'],
    ADD COLUMN replaces uuid,
    ADD COLUMN last_used_at timestamptz,
    ADD CONSTRAINT api_keys_scopes_check CHECK (cardinality(scopes) > 0 AND scopes <@ ARRAY['sessions:read',
        'sessions:write', 'results:read', 'compact', 'policy', 'export', 'erase', 'admin']);

CREATE INDEX api_keys_newest ON api_keys (tenant_id, created_at DESC, id DESC);

-- Keys of operators belong to no tenant. Only varve_admin may read them.
CREATE TABLE operator_keys (
    id           uuid        PRIMARY KEY,
    name         text        NOT NULL DEFAULT '',
    digest       bytea       NOT NULL CHECK (octet_length(digest) = 32),
    last4        text        NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    expires_at   timestamptz,
    revoked_at   timestamptz,
    last_used_at timestamptz,
    CONSTRAINT operator_keys_digest_key UNIQUE (digest)
);

-- A key that has ended does not live again, and none lives for longer than it was made for: whoever is not the owner of
-- the table may only end keys.
CREATE FUNCTION refuse_revival() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF pg_has_role(current_user, (SELECT relowner FROM pg_class WHERE oid = TG_RELID), 'USAGE') THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'a key may be ended, and not be given more time';
END
$$;

CREATE TRIGGER api_keys_end
    BEFORE UPDATE OF revoked_at, expires_at ON api_keys
    FOR EACH ROW
    WHEN (OLD.revoked_at IS NOT NULL AND NEW.revoked_at IS DISTINCT FROM OLD.revoked_at
        OR OLD.expires_at IS NOT NULL AND (NEW.expires_at > OLD.expires_at) IS NOT FALSE)
    EXECUTE FUNCTION refuse_revival();

CREATE TRIGGER operator_keys_end
    BEFORE UPDATE OF revoked_at, expires_at ON operator_keys
    FOR EACH ROW
    WHEN (OLD.revoked_at IS NOT NULL AND NEW.revoked_at IS DISTINCT FROM OLD.revoked_at
        OR OLD.expires_at IS NOT NULL AND (NEW.expires_at > OLD.expires_at) IS NOT FALSE)
    EXECUTE FUNCTION refuse_revival();

-- == Tenants ==========================================================================================================

-- limits are the quotas that the operator gives a tenant instead of the process's: see internal/quota. suspended is what
-- of a tenant's requests is refused. hold is the reason of a legal hold. erasure_id is the erasure that deletes the
-- tenant: nothing of it is served from then on. most_… is the longest retention that operators leave a tenant and its
-- sessions, NULL for no bound.
ALTER TABLE tenants
    ADD COLUMN limits            jsonb NOT NULL DEFAULT '{}',
    ADD COLUMN suspended         text CHECK (suspended IN ('reads', 'writes', 'all')),
    ADD COLUMN suspended_at      timestamptz,
    ADD COLUMN hold              text CHECK (octet_length(hold) BETWEEN 1 AND 1024),
    ADD COLUMN held_by           uuid,
    ADD COLUMN held_at           timestamptz,
    ADD COLUMN erasure_id        uuid,
    ADD COLUMN most_idle_seconds bigint CHECK (most_idle_seconds > 0),
    ADD COLUMN most_age_seconds  bigint CHECK (most_age_seconds > 0),
    ADD CONSTRAINT tenants_erasure_check CHECK (erasure_id IS NULL OR suspended = 'all' AND suspended IS NOT NULL);

CREATE INDEX tenants_newest ON tenants (created_at DESC, id DESC);

-- == Recompactions ====================================================================================================

-- ask is whether a recompaction has models asked for the summaries that are not kept. The others are when its sessions
-- may begin, that nobody wants it to go on for now, that it is taken back, the last tenth of its sessions of which it has
-- told that they are done, and what the ledger had counted of the tenant when it began.
ALTER TABLE recompactions
    ADD COLUMN ask             boolean NOT NULL DEFAULT false,
    ADD COLUMN group_id        uuid,
    ADD COLUMN per_minute      integer CHECK (per_minute BETWEEN 1 AND 6000),
    ADD COLUMN start_at        timestamptz,
    ADD COLUMN hours           jsonb,
    ADD COLUMN next_start_at   timestamptz,
    ADD COLUMN paused_at       timestamptz,
    ADD COLUMN rollback_at     timestamptz,
    ADD COLUMN rolled_back_at  timestamptz,
    ADD COLUMN rolled_back     bigint NOT NULL DEFAULT 0,
    ADD COLUMN excepted        bigint NOT NULL DEFAULT 0,
    ADD COLUMN told            smallint NOT NULL DEFAULT 0,
    ADD COLUMN views_base      bigint,
    ADD COLUMN served_base     bigint,
    ADD COLUMN read_backs_base bigint;

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

-- A recompaction of many tenants, which operators begin, is one of each of them, with the same group and the same time.
CREATE UNIQUE INDEX recompactions_group ON recompactions (group_id, tenant_id) WHERE group_id IS NOT NULL;
CREATE INDEX recompactions_groups ON recompactions (created_at, group_id) WHERE group_id IS NOT NULL;
CREATE POLICY operators ON recompactions FOR SELECT TO varve_admin USING (true);

-- == Erasure ==========================================================================================================

-- Erasures: of a session, of all sessions of a data subject, of sessions that have expired, or of a tenant. The deletion
-- of a tenant is an erasure of the operators, whose rows have the nil tenant: it outlives the tenant, which is
-- erased_tenant. A row is there before anything is erased and stays with its receipt. What it counts is added by the
-- transactions that erase.
CREATE TABLE erasures (
    tenant_id   uuid        NOT NULL,
    id          uuid        NOT NULL,
    kind        text        NOT NULL CHECK (kind IN ('session', 'subject', 'tenant', 'retention')),
    state       text        NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'running', 'done')),
    metadata    jsonb       CHECK (metadata IS NULL OR kind = 'subject'), -- which the sessions have; NULL at the end
    actor       text        NOT NULL,
    actor_id    uuid,
    request     text,
    address     text,
    sessions    bigint      NOT NULL DEFAULT 0,
    messages    bigint      NOT NULL DEFAULT 0,
    results     bigint      NOT NULL DEFAULT 0,
    bodies      bigint      NOT NULL DEFAULT 0,
    checkpoints bigint      NOT NULL DEFAULT 0,
    bytes       bigint      NOT NULL DEFAULT 0,
    objects     bigint      NOT NULL DEFAULT 0,
    digest      bytea, -- of what was erased so far; NULL at the end, when the receipt has it
    created_at  timestamptz NOT NULL DEFAULT now(),
    started_at  timestamptz,
    finished_at timestamptz,
    receipt     json,
    erased_tenant uuid,
    PRIMARY KEY (tenant_id, id),
    CHECK ((state = 'done') = (receipt IS NOT NULL)),
    CHECK ((state = 'done') = (finished_at IS NOT NULL)),
    CONSTRAINT erasures_erased_tenant_check CHECK ((kind = 'tenant') = (erased_tenant IS NOT NULL))
);

CREATE INDEX erasures_newest ON erasures (tenant_id, created_at DESC, id DESC);
CREATE INDEX erasures_live ON erasures (tenant_id) WHERE state <> 'done';
CREATE UNIQUE INDEX erasures_of_expired ON erasures (tenant_id) WHERE kind = 'retention' AND state <> 'done';

-- What an erasure does with sessions: due is a fork of one that was erased; erased has no row any more, but may have
-- objects in result stores, below its own prefix and those of sessions that it had inherited from; gone has nothing; held
-- is under a legal hold, and was not erased.
CREATE TABLE erasure_sessions (
    tenant_id   uuid   NOT NULL,
    erasure_id  uuid   NOT NULL,
    session_key uuid   NOT NULL,
    state       text   NOT NULL CHECK (state IN ('due', 'held', 'erased', 'gone')),
    prefixes    uuid[] NOT NULL DEFAULT '{}',
    PRIMARY KEY (tenant_id, erasure_id, session_key),
    FOREIGN KEY (tenant_id, erasure_id) REFERENCES erasures (tenant_id, id)
);

CREATE INDEX erasure_sessions_live ON erasure_sessions (tenant_id, erasure_id, state) WHERE state <> 'gone';

-- Such an erasure has not ended before its tenant is gone: a worker that does not know the kind finds no sessions of it.
CREATE FUNCTION refuse_early_end() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    IF EXISTS (SELECT FROM public.tenants WHERE id = NEW.erased_tenant AND erasure_id = NEW.id) THEN
        RAISE EXCEPTION 'the tenant is there: its erasure has not ended'
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END
$$;

CREATE TRIGGER erasures_end BEFORE UPDATE OF state ON erasures
    FOR EACH ROW WHEN (NEW.kind = 'tenant' AND NEW.state = 'done')
    EXECUTE FUNCTION refuse_early_end();

-- Deletes the row of a tenant that an erasure deletes, and what no login may delete otherwise: its keys, its receipts,
-- its audit trail. All else must be gone. The trail of the operators must say so next, see audit_blank_tenant.
CREATE FUNCTION end_tenant(tenant uuid, erasure uuid) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    found public.tenants;
BEGIN
    IF tenant IS DISTINCT FROM nullif(current_setting('app.tenant_id', true), '')::pg_catalog.uuid THEN
        RAISE EXCEPTION 'it is the transaction''s tenant that may be deleted'
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    SELECT *
      INTO found
      FROM public.tenants
     WHERE id = tenant
       FOR UPDATE;
    IF found.erasure_id IS DISTINCT FROM erasure OR erasure IS NULL THEN
        RAISE EXCEPTION 'no operator has asked for the deletion of the tenant'
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF found.hold IS NOT NULL THEN
        RAISE EXCEPTION 'the tenant is under a legal hold: nothing of it is erased'
            USING ERRCODE = 'restrict_violation', CONSTRAINT = 'tenants_hold';
    END IF;
    DELETE FROM public.api_keys WHERE tenant_id = tenant;
    DELETE FROM public.event_heads WHERE tenant_id = tenant;
    DELETE FROM public.erasure_sessions WHERE tenant_id = tenant;
    DELETE FROM public.erasures WHERE tenant_id = tenant;
    DELETE FROM public.tenants WHERE id = tenant;
    DELETE FROM public.audit_trail WHERE tenant_id = tenant;
    DELETE FROM public.audit_heads WHERE tenant_id = tenant;
END
$$;

-- == Legal holds ======================================================================================================

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

CREATE FUNCTION refuse_held() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, public, pg_temp AS $$
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

CREATE INDEX session_holds_newest ON session_holds (tenant_id, placed_at DESC, session_key DESC);

-- == Search ===========================================================================================================

-- The search over all of a tenant's messages. A worker writes the words of what was stored when its session rests: until
-- then a search reads the newest messages behind indexed_seq. due_since says since when it is known that a session has
-- such messages, or words by other rules than the tenant's. rules is the language, and " results" if results are found.
CREATE TABLE search_settings (
    tenant_id uuid    NOT NULL PRIMARY KEY REFERENCES tenants (id),
    language  text    NOT NULL,
    results   boolean NOT NULL DEFAULT false
);

CREATE TABLE search_sessions (
    tenant_id   uuid    NOT NULL,
    session_key uuid    NOT NULL,
    rules       text    NOT NULL DEFAULT 'simple',
    indexed_seq bigint  NOT NULL DEFAULT 0,
    in_part     integer NOT NULL DEFAULT 0, -- messages of which only the beginning is indexed, or nothing
    due_since   timestamptz,
    PRIMARY KEY (tenant_id, session_key),
    FOREIGN KEY (tenant_id, session_key) REFERENCES sessions (tenant_id, key)
);
CREATE INDEX search_sessions_due ON search_sessions (tenant_id, due_since, session_key) WHERE due_since IS NOT NULL;
CREATE INDEX search_sessions_in_part ON search_sessions (tenant_id) WHERE in_part > 0;

-- A block: the hashes of the words of some messages of a session, each once, and that of the tenant, so that a search of
-- the index never meets what others have. Whether the words are those of one message is read in the log. n is 0, the
-- number of a passage of the one message seqs has, or that of a passage of an uploaded result, whose block has no seqs.
CREATE TABLE search_blocks (
    tenant_id   uuid      NOT NULL,
    session_key uuid      NOT NULL,
    first_seq   bigint    NOT NULL,
    n           integer   NOT NULL,
    id          bigint    NOT NULL GENERATED ALWAYS AS IDENTITY,
    bytes       integer   NOT NULL, -- of the texts
    seqs        integer[] NOT NULL,
    words       integer[] NOT NULL,
    PRIMARY KEY (tenant_id, session_key, first_seq, n),
    FOREIGN KEY (tenant_id, session_key) REFERENCES sessions (tenant_id, key)
);
ALTER TABLE search_blocks ALTER COLUMN words SET STORAGE EXTERNAL; -- no compression makes hashes smaller
CREATE INDEX search_blocks_words ON search_blocks USING gin (words) WITH (gin_pending_list_limit = 1024);

-- The blocks of the tenant of the transaction that have all words of one of the lists that are wanted, those of the most
-- lists first, then the newest. Behind row-level security no operator of arrays may use an index, because none is
-- leakproof. This function is the owner's, whom row-level security of this one table does not bind.
CREATE FUNCTION search_candidates(wanted text[], most integer)
    RETURNS TABLE (id bigint, session_key uuid, first_seq bigint, n integer, seqs integer[])
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, public, pg_temp
    SET enable_seqscan TO off
    AS $$
DECLARE
    any_of text := string_agg(format('t.words @> %L::integer[]', w), ' OR ') FROM unnest(wanted) w;
    how_many text := string_agg(format('(t.words @> %L::integer[])::integer', w), ' + ') FROM unnest(wanted) w;
BEGIN
    RETURN QUERY EXECUTE '
        SELECT t.id, t.session_key, t.first_seq, t.n, t.seqs
          FROM public.search_blocks t
         WHERE t.tenant_id::pg_catalog.text = $1 -- not by its key: the index of the words has the tenant
           AND (' || any_of || ')
         ORDER BY ' || CASE WHEN cardinality(wanted) > 1 THEN how_many || ' DESC, ' ELSE '' END || 't.id DESC
         LIMIT $2'
    USING current_setting('app.tenant_id', true), most;
END
$$;

-- == Events ===========================================================================================================

-- What happened to a tenant's sessions and recompactions, for those who follow it: written by the transaction that did it.
-- n is its place among the events of its tenant, given at the commit. topic is what the events of which are told in
-- order: session/ID, recompaction/ID, budget, webhook/ID. An event with a text in once is written once.
CREATE TABLE events (
    tenant_id uuid        NOT NULL,
    id        uuid        NOT NULL,
    n         bigint      CHECK (n > 0),
    at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    type      text        NOT NULL CHECK (octet_length(type) BETWEEN 1 AND 64),
    topic     text        NOT NULL CHECK (octet_length(topic) BETWEEN 1 AND 1024),
    data      json        NOT NULL,
    once      text,
    PRIMARY KEY (tenant_id, id)
);

CREATE UNIQUE INDEX events_n ON events (tenant_id, n);
CREATE INDEX events_topic ON events (tenant_id, topic, n);
CREATE UNIQUE INDEX events_once ON events (tenant_id, once) WHERE once IS NOT NULL;

-- The number of each tenant's newest event. Workers see the rows of all tenants, see grants.sql; they have ids and
-- numbers only.
CREATE TABLE event_heads (
    tenant_id uuid   PRIMARY KEY,
    n         bigint NOT NULL
) WITH (fillfactor = 50);

-- Events are numbered when their transaction commits, under the lock of the tenant's head: numbers become visible in
-- their order, so that who has read up to a number has missed nothing before it. A transaction that takes long holds
-- nobody up before its commit. What is restored has its number already. Row-level security binds the function, which is
-- the owner's, and the transaction may have gone on to another tenant by then.
CREATE FUNCTION event_number() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    place  bigint;
    tenant pg_catalog.text := coalesce(current_setting('app.tenant_id', true), '');
BEGIN
    PERFORM set_config('app.tenant_id', NEW.tenant_id::pg_catalog.text, true);
    INSERT INTO public.event_heads AS h (tenant_id, n)
    VALUES (NEW.tenant_id, 1)
    ON CONFLICT (tenant_id) DO UPDATE
       SET n = h.n + 1
    RETURNING h.n INTO place;
    UPDATE public.events
       SET n = place
     WHERE tenant_id = NEW.tenant_id AND id = NEW.id;
    PERFORM set_config('app.tenant_id', tenant, true);
    RETURN NULL;
END
$$;

CREATE CONSTRAINT TRIGGER events_number AFTER INSERT ON events
    DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.n IS NULL) EXECUTE FUNCTION event_number();

-- == Webhooks =========================================================================================================

-- Where a tenant's events are sent. No types are all. failures counts rounds in a row in which nothing was delivered.
CREATE TABLE webhooks (
    tenant_id         uuid        NOT NULL REFERENCES tenants (id),
    id                uuid        NOT NULL,
    name              text        NOT NULL,
    url               text        NOT NULL CHECK (octet_length(url) BETWEEN 1 AND 2048),
    types             text[]      NOT NULL,
    created_at        timestamptz NOT NULL DEFAULT now(),
    disabled_at       timestamptz,
    disabled_reason   text,
    failures          integer     NOT NULL DEFAULT 0,
    failing_since     timestamptz,
    last_error        text,
    last_failed_at    timestamptz,
    last_delivered_at timestamptz,
    delivered         bigint      NOT NULL DEFAULT 0,
    dropped           bigint      NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, id)
);

CREATE INDEX webhooks_newest ON webhooks (tenant_id, created_at DESC, id DESC);

-- What signs. Two live during a rotation. Only workers may read them.
CREATE TABLE webhook_secrets (
    tenant_id  uuid        NOT NULL,
    webhook_id uuid        NOT NULL,
    id         uuid        NOT NULL,
    secret     bytea       NOT NULL CHECK (octet_length(secret) = 32),
    expires_at timestamptz,
    PRIMARY KEY (tenant_id, webhook_id, id),
    FOREIGN KEY (tenant_id, webhook_id) REFERENCES webhooks (tenant_id, id)
);

-- Events that a webhook still has to get. Of each topic, the first one is sent, and the others wait for it. A row whose
-- event is gone means nothing.
CREATE TABLE webhook_deliveries (
    tenant_id   uuid        NOT NULL,
    webhook_id  uuid        NOT NULL,
    n           bigint      NOT NULL,
    topic       text        NOT NULL,
    attempts    integer     NOT NULL DEFAULT 0,
    next_try_at timestamptz NOT NULL DEFAULT now(),
    error       text,
    PRIMARY KEY (tenant_id, webhook_id, n),
    FOREIGN KEY (tenant_id, webhook_id) REFERENCES webhooks (tenant_id, id)
);

CREATE INDEX webhook_deliveries_topic ON webhook_deliveries (tenant_id, topic);

-- The first delivery of each topic of a webhook is found without a look at those that wait behind it.
CREATE INDEX webhook_deliveries_first ON webhook_deliveries (tenant_id, webhook_id, topic, n);

-- Up to which event a webhook's deliveries are written down, and when it is to be looked at: not before resume_at, and
-- at retry_at without news. Workers see the rows of all tenants, see grants.sql; they have ids, numbers and times only.
CREATE TABLE webhook_turns (
    tenant_id  uuid        NOT NULL,
    webhook_id uuid        NOT NULL,
    enabled    boolean     NOT NULL DEFAULT true,
    through_n  bigint      NOT NULL,
    resume_at  timestamptz NOT NULL DEFAULT '-infinity',
    retry_at   timestamptz,
    taken_at   timestamptz,
    failing    boolean     NOT NULL DEFAULT false,
    PRIMARY KEY (tenant_id, webhook_id)
);

-- == Retention ========================================================================================================

-- When a tenant's sessions expire: so long after the last append (or, without one, after their creation), and so long
-- after their creation. NULL is never. A retention that archives has its times in archive_…. looked_at is when a worker
-- last looked for expired sessions.
CREATE TABLE retention (
    tenant_id    uuid        NOT NULL PRIMARY KEY REFERENCES tenants (id),
    idle_seconds bigint      CHECK (idle_seconds > 0),
    age_seconds  bigint      CHECK (age_seconds > 0),
    looked_at    timestamptz NOT NULL DEFAULT '-infinity',
    archives             boolean     NOT NULL DEFAULT false,
    archive_idle_seconds bigint      CHECK (archive_idle_seconds > 0),
    archive_age_seconds  bigint      CHECK (archive_age_seconds > 0),
    archive_kept_seconds bigint      CHECK (archive_kept_seconds > 0)
);
CREATE INDEX retention_looked_at ON retention (looked_at);

-- What a session has in place of its tenant's retention. look_at is the earliest time at which it may be expired: an
-- append does not move it, the worker that looks then does.
CREATE TABLE session_retention (
    tenant_id    uuid        NOT NULL,
    session_key  uuid        NOT NULL,
    idle_seconds bigint      CHECK (idle_seconds > 0),
    age_seconds  bigint      CHECK (age_seconds > 0),
    look_at      timestamptz,
    archives             boolean     NOT NULL DEFAULT false,
    archive_idle_seconds bigint      CHECK (archive_idle_seconds > 0),
    archive_age_seconds  bigint      CHECK (archive_age_seconds > 0),
    archive_kept_seconds bigint      CHECK (archive_kept_seconds > 0),
    PRIMARY KEY (tenant_id, session_key),
    FOREIGN KEY (tenant_id, session_key) REFERENCES sessions (tenant_id, key)
);
CREATE INDEX session_retention_look_at ON session_retention (tenant_id, look_at) WHERE look_at IS NOT NULL;

-- == Metadata of sessions =============================================================================================

-- The pairs of a key and a value that sessions have as metadata, by a hash: behind row-level security no operator of
-- jsonb may use an index, because none is leakproof. A trigger writes them, so that programs of before do, too; an append
-- does not change them. Other sessions may have a pair of the same hash, and a pair may be there that its session has
-- had before: who reads them compares the metadata itself.
CREATE TABLE session_metadata (
    tenant_id   uuid        NOT NULL,
    session_key uuid        NOT NULL,
    pair        bigint      NOT NULL,
    created_at  timestamptz NOT NULL, -- of the session: lists are in this order
    PRIMARY KEY (tenant_id, session_key, pair),
    FOREIGN KEY (tenant_id, session_key) REFERENCES sessions (tenant_id, key)
);
CREATE INDEX session_metadata_pair ON session_metadata (tenant_id, pair, created_at DESC, session_key DESC);

-- The pairs of metadata whose values are strings: one object contains another only if it has all its pairs.
CREATE FUNCTION metadata_pairs(metadata jsonb) RETURNS SETOF bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    SELECT DISTINCT hashtextextended(e.value #>> '{}', hashtextextended(e.key, 0))
      FROM jsonb_each(CASE WHEN jsonb_typeof(metadata) = 'object' THEN metadata ELSE '{}' END) e
     WHERE jsonb_typeof(e.value) = 'string'
$$;

CREATE FUNCTION index_metadata() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        DELETE FROM public.session_metadata
         WHERE tenant_id = OLD.tenant_id AND session_key = OLD.key;
    END IF;
    IF TG_OP = 'DELETE' THEN
        RETURN OLD;
    END IF;
    INSERT INTO public.session_metadata (tenant_id, session_key, pair, created_at)
    SELECT NEW.tenant_id, NEW.key, p.pair, NEW.created_at
      FROM public.metadata_pairs(NEW.metadata) AS p (pair)
        ON CONFLICT DO NOTHING;
    RETURN NULL;
END
$$;

CREATE TRIGGER sessions_metadata_made AFTER INSERT ON sessions
    FOR EACH ROW WHEN (NEW.metadata <> '{}') EXECUTE FUNCTION index_metadata();
CREATE TRIGGER sessions_metadata_changed AFTER UPDATE OF metadata ON sessions
    FOR EACH ROW WHEN (NEW.metadata IS DISTINCT FROM OLD.metadata) EXECUTE FUNCTION index_metadata();

CREATE TRIGGER sessions_metadata_gone BEFORE DELETE ON sessions
    FOR EACH ROW EXECUTE FUNCTION index_metadata();

-- == Frozen sessions ===================================================================================================

-- A frozen session has its row, and all that is found by it, but what was said in it lies in an archive; frozen_at is
-- when that was begun. One that nobody has used for long (a cold one) is listed and counted as before, and comes back by
-- itself when it is used. One that was archived, which somebody asked for, comes back when that is asked for;
-- restored_at is when it did, from which its retention counts again.
ALTER TABLE sessions
    ADD COLUMN frozen_at   timestamptz,
    ADD COLUMN archived    boolean NOT NULL DEFAULT false,
    ADD COLUMN restored_at timestamptz;

CREATE TRIGGER sessions_archived_check
    AFTER INSERT OR UPDATE OF frozen_at, archived ON sessions
    FOR EACH ROW
    WHEN (NEW.archived AND NEW.frozen_at IS NULL)
    EXECUTE FUNCTION refuse_row();

-- Sessions are counted in this index: the policy that hides frozen ones asks for both columns.
CREATE INDEX sessions_shown ON sessions (tenant_id, frozen_at, archived);

CREATE INDEX sessions_archived ON sessions (tenant_id, frozen_at DESC, key DESC) WHERE archived;

-- No statement takes a frozen session for an empty one: only a transaction that says that it means those, too, sees its
-- row. A statement that needs no more than the session's row may say that it means cold sessions, but not archived ones.
-- Who migrates and who backs up sees all.
CREATE POLICY frozen ON sessions AS RESTRICTIVE TO varve_app
    USING (frozen_at IS NULL
           OR current_setting('varve.frozen', true) = 'all'
           OR NOT archived AND current_setting('varve.frozen', true) = 'cold');

-- The archive of a session. While it is archiving, the session's rows are what they were; while it is restoring, some of
-- them are back. attempt is the worker's that does either now: one that was taken for dead does nothing more.
--
-- Its parts are objects, of these sizes, or rows of archive_parts. "digest" is the digest of the parts' digests. The view
-- of a cold session begins the first object, and ends there at view_end: reads of it leave the session where it is.
-- Objects are looked for by the session under whose prefix they lie.
CREATE TABLE session_archives (
    tenant_id     uuid        NOT NULL,
    session_key   uuid        NOT NULL,
    id            uuid        NOT NULL,
    state         text        NOT NULL DEFAULT 'archiving' CHECK (state IN ('archiving', 'archived', 'restoring')),
    attempt       uuid,
    archived_at   timestamptz,
    store         smallint    NOT NULL DEFAULT 0,
    rows          bigint      NOT NULL DEFAULT 0,
    messages      bigint      NOT NULL DEFAULT 0,
    results       bigint      NOT NULL DEFAULT 0,
    bodies        bigint      NOT NULL DEFAULT 0,
    checkpoints   bigint      NOT NULL DEFAULT 0,
    bytes         bigint      NOT NULL DEFAULT 0, -- of messages and bodies
    message_bytes bigint      NOT NULL DEFAULT 0,
    contents      bytea,                          -- the digest of these, as the receipt of an erasure has it
    model_use     jsonb       NOT NULL DEFAULT '{}',
    parts         integer     NOT NULL DEFAULT 0,
    stored        bigint      NOT NULL DEFAULT 0, -- bytes of the parts
    digest        bytea,                          -- of the digests of the parts
    done          bigint      NOT NULL DEFAULT 0, -- rows that were read, or are back
    error         text,
    failed_at     timestamptz,
    objects       uuid[]      NOT NULL DEFAULT '{}',
    sizes         integer[]   NOT NULL DEFAULT '{}',
    view_end      integer,
    PRIMARY KEY (tenant_id, session_key),
    FOREIGN KEY (tenant_id, session_key) REFERENCES sessions (tenant_id, key)
);

-- The parts of an archive that lies in PostgreSQL. They are compressed.
CREATE TABLE archive_parts (
    tenant_id   uuid    NOT NULL,
    session_key uuid    NOT NULL,
    n           integer NOT NULL,
    body        bytea   NOT NULL,
    PRIMARY KEY (tenant_id, session_key, n),
    FOREIGN KEY (tenant_id, session_key) REFERENCES session_archives (tenant_id, session_key)
);
ALTER TABLE archive_parts ALTER COLUMN body SET STORAGE EXTERNAL;

-- The erasure of a subject has not ended while there is an archived session of it that no hold keeps: a program from
-- before archives does not see it.
CREATE FUNCTION refuse_archived() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    shown text := coalesce(current_setting('varve.frozen', true), '');
BEGIN
    PERFORM set_config('varve.frozen', 'all', true);
    IF EXISTS (SELECT
                 FROM public.session_archives a
                 JOIN public.sessions s ON s.tenant_id = a.tenant_id AND s.key = a.session_key
                WHERE a.tenant_id = NEW.tenant_id AND s.metadata @> OLD.metadata
                  AND NOT EXISTS (SELECT
                                    FROM public.erasure_sessions l
                                   WHERE l.tenant_id = s.tenant_id AND l.erasure_id = NEW.id
                                     AND l.session_key = s.key AND l.state = 'held')) THEN
        RAISE EXCEPTION 'an archived session of the subject is there: its erasure has not ended'
            USING ERRCODE = 'restrict_violation';
    END IF;
    PERFORM set_config('varve.frozen', shown, true);
    RETURN NEW;
END
$$;

CREATE TRIGGER erasures_archived BEFORE UPDATE OF state ON erasures
    FOR EACH ROW WHEN (NEW.kind = 'subject' AND NEW.state = 'done' AND OLD.state <> 'done' AND OLD.metadata IS NOT NULL)
    EXECUTE FUNCTION refuse_archived();

-- == Row-level security ================================================================================================

ALTER TABLE sessions FORCE ROW LEVEL SECURITY;
ALTER TABLE messages FORCE ROW LEVEL SECURITY;
ALTER TABLE checkpoints FORCE ROW LEVEL SECURITY;
ALTER TABLE policy_versions FORCE ROW LEVEL SECURITY;
ALTER TABLE results FORCE ROW LEVEL SECURITY;

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY[
        'archive_parts', 'audit_heads', 'audit_trail', 'erasure_sessions',
        'erasures', 'event_heads', 'events', 'findings', 'message_packs', 'model_answers',
        'model_spending', 'replay_outcomes', 'replay_sessions', 'replays',
        'result_bodies', 'result_chunks', 'retention', 'search_blocks', 'search_sessions',
        'search_settings', 'session_archives', 'session_failures', 'session_holds', 'session_metadata',
        'session_pins', 'session_retention', 'session_tokens', 'summaries', 'uploads', 'usage_days',
        'usage_sessions', 'verifications', 'webhook_deliveries', 'webhook_secrets', 'webhook_turns',
        'webhooks']
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format($policy$CREATE POLICY tenant ON %I
            USING (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)
            WITH CHECK (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)$policy$, name);
    END LOOP;
END
$$;

-- search_candidates is the owner's, whom row-level security of this one table does not bind.
ALTER TABLE search_blocks NO FORCE ROW LEVEL SECURITY;

-- A login of varve_app reads its tenant's row, reads and inserts its tenant's jobs, and writes down what is due for its
-- tenant; varve_worker reaches all of it. The rounds are the workers'. The owner of these tables is not bound: no process
-- serves as the owner.
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

ALTER TABLE due_sessions ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON due_sessions
    USING (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid);
CREATE POLICY every_tenant ON due_sessions TO varve_worker USING (true) WITH CHECK (true);

ALTER TABLE tenant_tasks ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON tenant_tasks
    USING (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid);
CREATE POLICY every_tenant ON tenant_tasks TO varve_worker USING (true) WITH CHECK (true);

ALTER TABLE rounds ENABLE ROW LEVEL SECURITY;
CREATE POLICY workers ON rounds TO varve_worker USING (true) WITH CHECK (true);
