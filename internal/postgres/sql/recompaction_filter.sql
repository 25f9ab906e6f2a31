    (@sessions::text[] IS NULL OR s.id = ANY (@sessions))
AND (@metadata::jsonb IS NULL OR s.metadata @> @metadata)
AND (@created_before::timestamptz IS NULL OR s.created_at < @created_before)
AND (@created_after::timestamptz IS NULL OR s.created_at > @created_after)
AND (@min_tokens::bigint IS NULL OR s.context_tokens >= @min_tokens)
AND (@engine_version::bigint IS NULL
     OR (SELECT c.engine_version
           FROM checkpoints c
          WHERE c.tenant_id = @tenant AND c.session_key = s.key AND c.n = s.checkpoint_n) < @engine_version)
AND (@policy_version::bigint IS NULL
     OR (SELECT c.created_at
           FROM checkpoints c
          WHERE c.tenant_id = @tenant AND c.session_key = s.key AND c.n = s.checkpoint_n)
      < (SELECT coalesce(min(v.created_at), 'infinity')
           FROM policy_versions v
          WHERE v.tenant_id = @tenant AND v.session_key = '00000000-0000-0000-0000-000000000000'
            AND v.version >= @policy_version))
