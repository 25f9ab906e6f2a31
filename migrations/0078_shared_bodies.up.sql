-- A fork has the bodies of the session that it was made of without a copy: held_in is the session that has their chunks,
-- NULL for the body's own. When that session is erased, its chunks go to one of the forks; what lies outside the
-- database stays where it is, under the prefix of the session objects_in, NULL for the body's own.
ALTER TABLE result_bodies ADD COLUMN held_in uuid, ADD COLUMN objects_in uuid;
CREATE INDEX result_bodies_held ON result_bodies (tenant_id, held_in, id) WHERE held_in IS NOT NULL;
ALTER TABLE result_bodies
    ADD FOREIGN KEY (tenant_id, held_in, id) REFERENCES result_bodies (tenant_id, session_key, id)
        DEFERRABLE INITIALLY DEFERRED;
