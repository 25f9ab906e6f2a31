-- River's schema version 8, as github.com/riverqueue/river v0.51.0 (MPL-2.0) makes it, with its row in river_migration.
SELECT 1;

INSERT INTO river_migration (line, version) VALUES ('main', 8);
