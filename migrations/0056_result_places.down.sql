-- Of results that share a place, all but one get the next free places after the message's last part: their refs, by
-- which everything names them, stay.
UPDATE results r
   SET part = moved.part
  FROM (SELECT tenant_id, session_key, ref,
               last + row_number() OVER (PARTITION BY tenant_id, session_key, seq ORDER BY part, ref) AS part
          FROM (SELECT tenant_id, session_key, seq, part, ref,
                       max(part) OVER (PARTITION BY tenant_id, session_key, seq) AS last,
                       row_number() OVER (PARTITION BY tenant_id, session_key, seq, part ORDER BY ref) AS nth
                  FROM results) placed
         WHERE nth > 1) moved
 WHERE (r.tenant_id, r.session_key, r.ref) = (moved.tenant_id, moved.session_key, moved.ref);
ALTER TABLE results ADD CONSTRAINT results_tenant_id_session_key_seq_part_key UNIQUE (tenant_id, session_key, seq, part);
DROP INDEX results_place;
