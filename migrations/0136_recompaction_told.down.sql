ALTER TABLE recompactions DROP COLUMN told;
