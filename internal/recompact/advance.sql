-- Sets a recompaction's state, or ends it if no session is left for which it must wait. While it runs, told becomes how
-- many tenths of its sessions are done.
UPDATE recompactions
   SET state = CASE WHEN l.live THEN @state WHEN @state = 'cancelling' THEN 'cancelled' ELSE 'done' END,
       finished_at = CASE WHEN NOT l.live THEN now() END,
       told = CASE WHEN l.live AND @state = 'running' AND total >= 10
                   THEN greatest(told, least(9, 10 * (changed + unchanged + failed + skipped) / total))
                   ELSE told END
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
