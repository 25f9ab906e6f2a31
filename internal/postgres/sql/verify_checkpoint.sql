-- One checkpoint of a session with all that is stored of it.
--
--   $1 tenant  $2 session key  $3 number
SELECT c.n, c.base_n AS base, coalesce(c.restored_from, 0) AS restored_from, c.through_seq AS through, c.tokens,
       c.body IS NOT NULL AS kept, coalesce(c.body, '') AS body, c.body_size AS size, coalesce(c.state, '') AS state,
       c.units, c.manifest, c.open_calls, coalesce(c.validator_state, '') AS validator_state,
       c.engine_version, c.body_digest IS NOT NULL AS sealed, coalesce({whole}, true) AS whole,
       coalesce(c.state_digest IS NULL OR c.state_digest = sha256(c.state), true) AS state_whole,
       (SELECT count(*)
          FROM messages m
         WHERE m.tenant_id = $1 AND m.session_key = $2 AND m.seq > {pinned} AND m.seq <= c.through_seq
           AND m.removed_at IS NULL) AS messages,
       EXISTS (
       SELECT
         FROM messages m
        WHERE m.tenant_id = $1 AND m.session_key = $2 AND m.seq > {pinned} AND m.seq <= c.through_seq
          AND m.removed_at IS NULL AND m.format <> s.format) AS translated
  FROM sessions s
  JOIN checkpoints c ON c.tenant_id = $1 AND c.session_key = $2 AND c.n = $3
 WHERE s.tenant_id = $1 AND s.key = $2
