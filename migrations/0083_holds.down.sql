DROP TRIGGER sessions_held ON sessions;
DROP FUNCTION refuse_held();
ALTER TABLE tenants DROP COLUMN hold, DROP COLUMN held_by, DROP COLUMN held_at;
DROP TABLE session_holds;
