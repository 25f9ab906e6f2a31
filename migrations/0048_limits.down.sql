DROP TRIGGER imports_ended ON imports;
DROP TRIGGER runs_ended ON runs;
DROP FUNCTION notify_ended();
ALTER TABLE tenants DROP COLUMN limits;
