DROP FUNCTION audit_hash(audit_trail);
DROP TABLE audit_trail;
DROP TABLE audit_heads;
DROP FUNCTION audit_chain();
DROP FUNCTION audit_refuse();
