-- The reverse of River's schema version 2 (github.com/riverqueue/river v0.51.0, MPL-2.0).
DROP TABLE river_job;
DROP FUNCTION river_job_notify;
DROP TYPE river_job_state;

DROP TABLE river_leader;

DELETE FROM river_migration WHERE version = 2;
