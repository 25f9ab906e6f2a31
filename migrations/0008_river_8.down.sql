-- The reverse of River's schema version 8 (github.com/riverqueue/river v0.51.0, MPL-2.0).
SELECT 1;

DELETE FROM river_migration WHERE line = 'main' AND version = 8;
