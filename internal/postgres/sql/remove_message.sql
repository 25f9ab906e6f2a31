-- Marks a message as removed at the seq @removed_seq, takes it out of the session's counters, ends the floor, which was
-- found with it, and returns whether the newest checkpoint covers it. It returns no row if there is no such message or it was removed before.
WITH removed AS (
	UPDATE messages
	   SET removed_at = now(), removed_seq = @removed_seq
	 WHERE tenant_id = @tenant AND session_key = @session AND seq = @seq AND removed_at IS NULL
	RETURNING tokens, coalesce(view_tokens, tokens) AS shown, coalesce(bytes, octet_length(body)) AS size
)
UPDATE sessions s
   SET last_seq = @removed_seq,
       gap_seq = @removed_seq,
       floor_tokens = 0,
       pinned = CASE WHEN s.pinned = s.last_seq THEN @removed_seq ELSE s.pinned END,
       total_tokens = s.total_tokens - r.tokens,
       context_tokens = s.context_tokens - CASE WHEN s.through_seq < @seq THEN r.shown ELSE 0 END,
       tail_bytes = s.tail_bytes - CASE WHEN s.through_seq < @seq THEN r.size ELSE 0 END
  FROM removed r
 WHERE s.tenant_id = @tenant AND s.key = @session
RETURNING s.through_seq >= @seq
