DROP FUNCTION audit_blank_tenant(uuid);
DROP FUNCTION end_tenant(uuid, uuid);
DROP TRIGGER audit_heads_kept ON audit_heads;
CREATE TRIGGER audit_heads_kept BEFORE DELETE ON audit_heads
    FOR EACH ROW EXECUTE FUNCTION audit_refuse();
DROP TRIGGER audit_trail_kept ON audit_trail;
CREATE TRIGGER audit_trail_kept BEFORE DELETE ON audit_trail
    FOR EACH ROW EXECUTE FUNCTION audit_refuse();
DROP FUNCTION audit_keep();
DROP TRIGGER erasures_end ON erasures;
DROP FUNCTION refuse_early_end();
DROP INDEX erasures_live;
DELETE FROM chores WHERE kind = 'erasure';
ALTER TABLE chores
    DROP CONSTRAINT chores_kind_check,
    ADD CONSTRAINT chores_kind_check CHECK (kind IN ('policy', 'recompaction', 'replay', 'index'));
ALTER TABLE tenants DROP COLUMN erasure_id;
ALTER TABLE erasures NO FORCE ROW LEVEL SECURITY;
DELETE FROM erasures WHERE kind = 'tenant';
ALTER TABLE erasures FORCE ROW LEVEL SECURITY;
ALTER TABLE erasures
    DROP COLUMN erased_tenant,
    DROP CONSTRAINT erasures_kind_check,
    ADD CONSTRAINT erasures_kind_check CHECK (kind IN ('session', 'subject'));
