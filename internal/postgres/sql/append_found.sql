-- Looks the sessions of appends up, one by one. For a join PostgreSQL would read all sessions of a tenant that it thinks
-- has few, and the conditions that are always true make it think that there is one append, so that what follows looks
-- by ctid, in this order. Those whose client ids or Idempotency-Key are known are left out, for they would fail all the
-- others; a scalar sub-select looks up what is asked for, where for EXISTS all of a tenant's may be read and hashed.
WITH found AS MATERIALIZED (
	SELECT a.*, s.ctid AS place
	  FROM unnest({arrays})
	           WITH ORDINALITY AS a ({columns}, n)
	 CROSS JOIN LATERAL (
	       SELECT ctid, key
	         FROM sessions
	        WHERE tenant_id = @tenant AND id = a.session
	        LIMIT 1) s
	 WHERE a.n > 0 AND a.count > 0 AND a.bytes >= 0
	   AND (a.route IS NULL OR (
	           SELECT i.session_key
	             FROM idempotency i
	            WHERE i.tenant_id = @tenant AND i.route = a.route AND i.key = a.request) IS NULL)
	   AND (NOT a.named OR (
	           SELECT count((SELECT k.seq
	                           FROM messages k
	                          WHERE k.tenant_id = @tenant AND k.session_key = s.key AND k.client_id = c.id
	                            AND {named}))
	             FROM unnest(@client_ids::text[], @owners::bigint[]) c (id, owner)
	            WHERE c.owner = a.n) = 0)
),
