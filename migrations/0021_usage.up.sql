-- What callers report as used corrects the estimate of tokens, for each session by a factor of its own. calibrate is
-- tokens.calibrate of the policy's document, beside it because every append compares with it.

ALTER TABLE policies
    ADD COLUMN calibrate boolean NOT NULL DEFAULT true;

ALTER TABLE sessions
    ADD COLUMN calibration real NOT NULL DEFAULT 1 CHECK (calibration BETWEEN 0.5 AND 3),
    ADD COLUMN last_usage  jsonb;
