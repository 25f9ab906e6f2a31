-- Makes a checkpoint the session's newest and counts the tokens of its view. It always adds them up from the
-- messages: the difference that a compaction reports is not exact, because a message of another format has another
-- number of tokens once the checkpoint renders it in the session's format.
--
--   $1 tenant  $2 session key  $3 number of the checkpoint  $4 the last seq that it covers
--   $5 size of its body  $6 its tokens  $7 the version of the tenant's policy that it was made under, 0 for today's
UPDATE sessions s
   SET checkpoint_n = $3, through_seq = $4, checkpoint_size = $5, unbound_seq = s.last_seq,
       engine_version = (SELECT c.engine_version
                           FROM checkpoints c
                          WHERE c.tenant_id = $1 AND c.session_key = $2 AND c.n = $3),
       policy_version = coalesce(nullif($7, 0), (SELECT p.tenant_version
                                                   FROM policies p
                                                  WHERE p.tenant_id = $1 AND p.id = s.policy_id)),
       context_tokens = $6
           + {separate_tokens}
           + (SELECT coalesce(sum(coalesce(m.view_tokens, m.tokens)), 0)
                FROM messages m
               WHERE m.tenant_id = $1 AND m.session_key = $2
                 AND m.seq > greatest($4, {pinned}) AND m.seq <= s.last_seq
                 AND m.removed_at IS NULL),
       tail_bytes = (SELECT coalesce(sum(coalesce(m.bytes, octet_length(m.body))), 0)
                       FROM messages m
                      WHERE m.tenant_id = $1 AND m.session_key = $2 AND m.seq > $4 AND m.seq <= s.last_seq
                        AND m.removed_at IS NULL)
 WHERE s.tenant_id = $1 AND s.key = $2
RETURNING s.context_tokens
