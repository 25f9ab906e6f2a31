ALTER TABLE sessions
    DROP COLUMN calibration,
    DROP COLUMN counted_tokens,
    DROP COLUMN exact_tokens,
    DROP COLUMN last_usage;

DROP INDEX policies_exact;

ALTER TABLE policies
    DROP COLUMN calibrate,
    DROP COLUMN tokenizer;
