DROP INDEX tenants_newest;
ALTER TABLE tenants DROP COLUMN suspended, DROP COLUMN suspended_at;
