-- Supersedes all messages from seq @from on that are not removed, at the seq @removed_seq, takes them out of the
-- session's counters, and ends the floor, which was found with them. It returns whether the newest checkpoint covers one
-- of them, and how many they are.
WITH superseded AS (
	UPDATE messages
	   SET removed_at = now(), removed_seq = @removed_seq, superseded_by = @removed_seq
	 WHERE tenant_id = @tenant AND session_key = @session AND seq >= @from AND removed_at IS NULL
	RETURNING seq, tokens, coalesce(view_tokens, tokens) AS shown, coalesce(bytes, octet_length(body)) AS size
), sums AS (
	SELECT count(*) AS messages, coalesce(sum(m.tokens), 0) AS tokens,
	       coalesce(sum(m.shown) FILTER (WHERE m.seq > s.through_seq), 0) AS shown,
	       coalesce(sum(m.size) FILTER (WHERE m.seq > s.through_seq), 0) AS size
	  FROM superseded m
	  JOIN sessions s ON s.tenant_id = @tenant AND s.key = @session
)
UPDATE sessions s
   SET last_seq = @removed_seq,
       gap_seq = @removed_seq,
       floor_tokens = 0,
       total_tokens = s.total_tokens - r.tokens,
       context_tokens = s.context_tokens - r.shown,
       tail_bytes = s.tail_bytes - r.size
  FROM sums r
 WHERE s.tenant_id = @tenant AND s.key = @session
RETURNING s.through_seq >= @from, r.messages
