-- An archived session has its row, and all that is found by it, but what was said in it lies in an archive. archived_at
-- is when it was asked for; restored_at when it ended, from which the session's retention counts again.
ALTER TABLE sessions
    ADD COLUMN archived_at timestamptz,
    ADD COLUMN restored_at timestamptz;

-- No statement takes an archived session for an empty one: only a transaction that says that it means those, too, sees
-- its row. Who migrates and who backs up sees all.
CREATE POLICY archived ON sessions AS RESTRICTIVE TO varve_app
    USING (archived_at IS NULL OR current_setting('varve.archived', true) = 'on');

-- The archive of a session. While it is archiving, the session's rows are what they were; while it is restoring, some of
-- them are back. attempt is the worker's that does either now: one that was taken for dead does nothing more.
CREATE TABLE session_archives (
    tenant_id     uuid        NOT NULL,
    session_key   uuid        NOT NULL,
    id            uuid        NOT NULL,
    state         text        NOT NULL DEFAULT 'archiving' CHECK (state IN ('archiving', 'archived', 'restoring')),
    attempt       uuid,
    asked_at      timestamptz NOT NULL DEFAULT now(),
    archived_at   timestamptz,
    store         smallint    NOT NULL DEFAULT 0,
    tables        jsonb       NOT NULL DEFAULT '{}', -- rows by table
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
    PRIMARY KEY (tenant_id, session_key),
    FOREIGN KEY (tenant_id, session_key) REFERENCES sessions (tenant_id, key)
);
CREATE INDEX session_archives_newest ON session_archives (tenant_id, asked_at DESC, session_key DESC);

-- The parts of an archive: bytes, or the object that has them. They are compressed.
CREATE TABLE archive_parts (
    tenant_id   uuid    NOT NULL,
    session_key uuid    NOT NULL,
    n           integer NOT NULL,
    rows        bigint  NOT NULL,
    size        integer NOT NULL,
    digest      bytea   NOT NULL,
    body        bytea,
    object      uuid,
    PRIMARY KEY (tenant_id, session_key, n),
    FOREIGN KEY (tenant_id, session_key) REFERENCES session_archives (tenant_id, session_key),
    CHECK ((body IS NULL) <> (object IS NULL))
);
ALTER TABLE archive_parts ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE INDEX archive_parts_object ON archive_parts (tenant_id, object) WHERE object IS NOT NULL;

ALTER TABLE session_archives ENABLE ROW LEVEL SECURITY;
ALTER TABLE session_archives FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON session_archives
    USING (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid);

ALTER TABLE archive_parts ENABLE ROW LEVEL SECURITY;
ALTER TABLE archive_parts FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON archive_parts
    USING (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid);

-- A retention that archives has its times here, and none where programs from before look: they would erase.
ALTER TABLE retention
    ADD COLUMN archives             boolean NOT NULL DEFAULT false,
    ADD COLUMN archive_idle_seconds bigint  CHECK (archive_idle_seconds > 0),
    ADD COLUMN archive_age_seconds  bigint  CHECK (archive_age_seconds > 0),
    ADD COLUMN archive_kept_seconds bigint  CHECK (archive_kept_seconds > 0);
ALTER TABLE session_retention
    ADD COLUMN archives             boolean NOT NULL DEFAULT false,
    ADD COLUMN archive_idle_seconds bigint  CHECK (archive_idle_seconds > 0),
    ADD COLUMN archive_age_seconds  bigint  CHECK (archive_age_seconds > 0),
    ADD COLUMN archive_kept_seconds bigint  CHECK (archive_kept_seconds > 0);

-- The erasure of a subject has not ended while there is an archived session of it that no hold keeps: a program from
-- before archives does not see it.
CREATE FUNCTION refuse_archived() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, public AS $$
DECLARE
    shown text := coalesce(current_setting('varve.archived', true), '');
BEGIN
    PERFORM set_config('varve.archived', 'on', true);
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
    PERFORM set_config('varve.archived', shown, true);
    RETURN NEW;
END
$$;

CREATE TRIGGER erasures_archived BEFORE UPDATE OF state ON erasures
    FOR EACH ROW WHEN (NEW.kind = 'subject' AND NEW.state = 'done' AND OLD.state <> 'done' AND OLD.metadata IS NOT NULL)
    EXECUTE FUNCTION refuse_archived();
