-- A pack may be an object: below the prefix of its own session, or of that which objects_in names. Rows of forks name
-- the same objects. packs_in are the sessions below whose prefixes a fork has had objects.
-- The locks are taken in the order of the program's transactions, or these would end in deadlocks.
ALTER TABLE sessions ADD COLUMN packs_in uuid[];

ALTER TABLE message_packs
    ALTER COLUMN body DROP NOT NULL,
    ADD COLUMN store smallint NOT NULL DEFAULT 0,
    ADD COLUMN object uuid,
    ADD COLUMN object_size integer,
    ADD COLUMN objects_in uuid;

ALTER TABLE message_packs
    ADD CONSTRAINT message_packs_place CHECK (
        (body IS NULL) = (object IS NOT NULL) AND (object IS NULL) = (object_size IS NULL)
        AND (object IS NULL) = (store = 0));

CREATE INDEX message_packs_object ON message_packs (tenant_id, object) WHERE object IS NOT NULL;
