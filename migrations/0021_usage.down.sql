ALTER TABLE sessions
    DROP COLUMN calibration,
    DROP COLUMN last_usage;

ALTER TABLE policies
    DROP COLUMN calibrate;
