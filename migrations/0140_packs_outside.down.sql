ALTER TABLE sessions DROP COLUMN packs_in;
ALTER TABLE message_packs NO FORCE ROW LEVEL SECURITY;
DO $$
BEGIN
    IF EXISTS (SELECT FROM message_packs WHERE object IS NOT NULL) THEN
        RAISE EXCEPTION 'there are packs outside: move them with varve results move --to postgres first';
    END IF;
END
$$;
ALTER TABLE message_packs FORCE ROW LEVEL SECURITY;

DROP INDEX message_packs_object;
ALTER TABLE message_packs
    DROP CONSTRAINT message_packs_place,
    DROP COLUMN objects_in,
    DROP COLUMN object_size,
    DROP COLUMN object,
    DROP COLUMN store,
    ALTER COLUMN body SET NOT NULL;
