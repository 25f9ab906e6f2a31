    (@sessions::text[] IS NULL OR s.id = ANY (@sessions))
AND (@metadata::jsonb IS NULL OR s.metadata @> @metadata)
AND (@created_before::timestamptz IS NULL OR s.created_at < @created_before)
AND (@created_after::timestamptz IS NULL OR s.created_at > @created_after)
AND (@min_tokens::bigint IS NULL OR s.context_tokens >= @min_tokens)
AND (@engine_version::bigint IS NULL OR s.engine_version < @engine_version)
AND (@policy_version::bigint IS NULL OR s.policy_version < @policy_version)
AND (@model::text IS NULL OR s.model = @model)
AND (@format::smallint IS NULL OR s.format = @format)
AND (@forked_from::text IS NULL OR s.forked_from = @forked_from)
AND (@updated_after::timestamptz IS NULL OR s.last_append_at > @updated_after)
AND (NOT @over_window::boolean OR s.context_tokens > ({room}) >> 32)
AND (NOT @failing::boolean OR EXISTS (
    SELECT
      FROM session_failures f
     WHERE f.tenant_id = s.tenant_id AND f.session_key = s.key))
