-- The reverse of River's schema version 1 (github.com/riverqueue/river v0.51.0, MPL-2.0).
DROP TABLE river_migration;
