-- River's schema version 3, as github.com/riverqueue/river v0.51.0 (MPL-2.0) makes it, with its row in river_migration.
ALTER TABLE river_job ALTER COLUMN tags SET DEFAULT '{}';
UPDATE river_job SET tags = '{}' WHERE tags IS NULL;
ALTER TABLE river_job ALTER COLUMN tags SET NOT NULL;

INSERT INTO river_migration (version) VALUES (3);
