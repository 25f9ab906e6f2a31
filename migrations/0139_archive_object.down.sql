ALTER TABLE session_archives NO FORCE ROW LEVEL SECURITY;
DO $$
BEGIN
    IF EXISTS (SELECT FROM session_archives WHERE object IS NOT NULL) THEN
        RAISE EXCEPTION 'there are archives whose part has no row: bring the sessions back, or erase them, first';
    END IF;
END
$$;
ALTER TABLE session_archives FORCE ROW LEVEL SECURITY;

CREATE INDEX archive_parts_object ON archive_parts (tenant_id, object) WHERE object IS NOT NULL;
ALTER TABLE session_archives DROP COLUMN view_end;
ALTER TABLE session_archives DROP COLUMN object;
