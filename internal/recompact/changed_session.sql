-- What a recompaction has done to a session that is not rolled back yet, and what happened since. A checkpoint that was
-- made because a model has answered is a part of the recompaction that asked the model.
SELECT l.base_n AS base, l.checkpoint_n AS made, coalesce(c.made_after < @last_seq, true) AS appended,
       EXISTS (
       SELECT
         FROM checkpoints n
         LEFT JOIN runs r ON r.tenant_id = @tenant AND r.id = n.run_id
        WHERE n.tenant_id = @tenant AND n.session_key = @session AND n.n > l.checkpoint_n
          AND r.cause IS DISTINCT FROM @summary) AS newer,
       EXISTS (
       SELECT
         FROM checkpoints b
         JOIN messages m ON m.tenant_id = @tenant AND m.session_key = @session
                        AND m.seq <= b.through_seq AND m.removed_seq > c.made_after
        WHERE b.tenant_id = @tenant AND b.session_key = @session AND b.n = l.base_n) AS removed
  FROM recompaction_sessions l
  LEFT JOIN checkpoints c ON c.tenant_id = @tenant AND c.session_key = @session AND c.n = l.checkpoint_n
 WHERE l.tenant_id = @tenant AND l.recompaction_id = @recompaction AND l.session_key = @session
   AND l.state = 'changed' AND l.rollback IS NULL
