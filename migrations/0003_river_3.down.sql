-- The reverse of River's schema version 3 (github.com/riverqueue/river v0.51.0, MPL-2.0).
ALTER TABLE river_job
    ALTER COLUMN tags DROP NOT NULL,
    ALTER COLUMN tags DROP DEFAULT;

DELETE FROM river_migration WHERE version = 3;
