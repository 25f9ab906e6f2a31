-- Sets a recompaction's state, or ends it if no session is left for which it must wait.
UPDATE recompactions
   SET state = CASE WHEN l.live THEN @state WHEN @state = 'cancelling' THEN 'cancelled' ELSE 'done' END,
       finished_at = CASE WHEN NOT l.live THEN now() END
  FROM (SELECT @state = 'queued'
            OR EXISTS (
               SELECT
                 FROM recompaction_sessions
                WHERE tenant_id = @tenant AND recompaction_id = @id AND state = 'running' AND finished_at IS NULL)
            OR @state = 'running' AND EXISTS (
               SELECT
                 FROM recompaction_sessions
                WHERE tenant_id = @tenant AND recompaction_id = @id AND state = 'queued' AND finished_at IS NULL)
            AS live) l
 WHERE tenant_id = @tenant AND id = @id AND finished_at IS NULL
