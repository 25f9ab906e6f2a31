-- The summaries that checkpoints wait for: written by the transaction that commits the checkpoint, answered by the job
-- that asks the model. request is what the model is asked, as JSON in a zstd frame, until it is answered or given up;
-- answer_keys are the rows of model_answers that the answer is made of.
-- The digest of a request does not say which model is asked: model is the operator's name for it.
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
    PRIMARY KEY (tenant_id, session_key, model, digest),
    FOREIGN KEY (tenant_id, session_key) REFERENCES sessions (tenant_id, key),
    CHECK ((request IS NOT NULL) = (state IN ('due', 'asking'))),
    CHECK ((summary IS NOT NULL) = (state = 'answered'))
);

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

ALTER TABLE summaries ENABLE ROW LEVEL SECURITY;
ALTER TABLE summaries FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON summaries
    USING (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid);

ALTER TABLE model_answers ENABLE ROW LEVEL SECURITY;
ALTER TABLE model_answers FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON model_answers
    USING (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid);

ALTER TABLE model_spending ENABLE ROW LEVEL SECURITY;
ALTER TABLE model_spending FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON model_spending
    USING (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid);
