ALTER TABLE recompactions DROP COLUMN ask;
