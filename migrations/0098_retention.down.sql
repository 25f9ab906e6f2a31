DROP INDEX erasures_of_expired;
ALTER TABLE erasures DROP CONSTRAINT erasures_kind_check;
ALTER TABLE erasures ADD CONSTRAINT erasures_kind_check CHECK (kind IN ('session', 'subject', 'tenant')) NOT VALID;
DROP INDEX usage_sessions_empty;
DROP TABLE session_retention;
DROP TABLE retention;
