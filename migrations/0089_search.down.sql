DELETE FROM chores WHERE kind = 'index';
ALTER TABLE chores
    DROP CONSTRAINT chores_kind_check,
    ADD CONSTRAINT chores_kind_check CHECK (kind IN ('policy', 'recompaction', 'replay'));
DROP FUNCTION search_passages;
DROP TABLE search_texts;
DROP FUNCTION search_tenant_word;
DROP TABLE search_sessions;
DROP TABLE search_settings;
