DROP FUNCTION audit_blank_subject(uuid, jsonb);
DROP FUNCTION audit_blank(uuid, text, uuid);
DROP TRIGGER audit_trail_blanks ON audit_trail;
DROP TRIGGER audit_trail_kept ON audit_trail;
CREATE TRIGGER audit_trail_kept BEFORE UPDATE OR DELETE ON audit_trail
    FOR EACH ROW EXECUTE FUNCTION audit_refuse();
DROP FUNCTION audit_blanks();
ALTER TABLE audit_trail DROP COLUMN blanked_by;
DROP TABLE receipt_keys;
DROP TABLE erasure_sessions;
DROP TABLE erasures;
