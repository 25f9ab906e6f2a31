-- What callers report as used corrects the estimate of tokens, for each session by a factor of its own; where nothing is
-- reported, an exact tokenizer that the policy names does. calibrate is tokens.calibrate of the policy's document, beside
-- it because every append compares with it. tokenizer follows the document by itself.

ALTER TABLE policies
    ADD COLUMN calibrate boolean NOT NULL DEFAULT true,
    ADD COLUMN tokenizer text    NOT NULL GENERATED ALWAYS AS (coalesce(document #>> '{tokens,tokenizer}', 'estimate')) STORED;

CREATE INDEX policies_exact ON policies (tenant_id) WHERE tokenizer <> 'estimate';

-- counted_tokens is the estimate of those messages that were counted exactly, exact_tokens what they have.
ALTER TABLE sessions
    ADD COLUMN calibration    real   NOT NULL DEFAULT 1 CHECK (calibration BETWEEN 0.5 AND 3),
    ADD COLUMN counted_tokens bigint NOT NULL DEFAULT 0,
    ADD COLUMN exact_tokens   bigint NOT NULL DEFAULT 0,
    ADD COLUMN last_usage     jsonb;
