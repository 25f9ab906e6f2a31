DROP TABLE operator_keys;
DROP TRIGGER api_keys_end ON api_keys;
DROP FUNCTION refuse_revival();
DROP INDEX api_keys_newest;
ALTER TABLE api_keys DROP COLUMN scopes, DROP COLUMN replaces, DROP COLUMN last_used_at;
