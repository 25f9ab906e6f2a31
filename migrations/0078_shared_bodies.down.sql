-- Each fork gets the chunks of the bodies that it shares.
ALTER TABLE result_bodies NO FORCE ROW LEVEL SECURITY;
ALTER TABLE result_chunks NO FORCE ROW LEVEL SECURITY;
DO $$
BEGIN
    IF EXISTS (SELECT FROM result_bodies WHERE objects_in IS NOT NULL AND store <> 0)
       OR EXISTS (SELECT
                    FROM result_bodies b
                    JOIN result_bodies h ON h.tenant_id = b.tenant_id AND h.session_key = b.held_in AND h.id = b.id
                   WHERE h.store <> 0) THEN
        RAISE EXCEPTION 'forks share bodies outside the database: varve results move --to postgres first';
    END IF;
END
$$;
INSERT INTO result_chunks (tenant_id, session_key, body_id, n, at, line, in_line, size, codec, digest, body)
SELECT b.tenant_id, b.session_key, b.id, c.n, c.at, c.line, c.in_line, c.size, c.codec, c.digest, c.body
  FROM result_bodies b
  JOIN result_chunks c ON c.tenant_id = b.tenant_id AND c.session_key = b.held_in AND c.body_id = b.id;
ALTER TABLE result_bodies FORCE ROW LEVEL SECURITY;
ALTER TABLE result_chunks FORCE ROW LEVEL SECURITY;
ALTER TABLE result_bodies DROP COLUMN held_in, DROP COLUMN objects_in;
