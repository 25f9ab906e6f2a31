-- Gives the chunks of the bodies that a session holds for its forks to one fork each. Objects stay where they are.
--
--   $1 tenant  $2 key of the session
WITH heirs AS (
	SELECT DISTINCT ON (f.id) f.id, f.session_key AS heir, h.store, coalesce(h.objects_in, h.session_key) AS objects_in
	  FROM result_bodies f
	  JOIN result_bodies h ON h.tenant_id = $1 AND h.session_key = $2 AND h.id = f.id
	 WHERE f.tenant_id = $1 AND f.held_in = $2
	 ORDER BY f.id, f.session_key
), moved AS (
	UPDATE result_chunks c
	   SET session_key = h.heir
	  FROM heirs h
	 WHERE c.tenant_id = $1 AND c.session_key = $2 AND c.body_id = h.id
)
UPDATE result_bodies b
   SET held_in = nullif(h.heir, b.session_key), store = h.store, objects_in = h.objects_in
  FROM heirs h
 WHERE b.tenant_id = $1 AND b.held_in = $2 AND b.id = h.id
