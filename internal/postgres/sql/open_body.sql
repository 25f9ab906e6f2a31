-- The index of a body and the bytes of some of its chunks: those that are wanted, or of a body that has only one chunk.
SELECT {columns} coalesce(b.held_in, b.session_key), b.id, b.sha256, b.bytes, b.lines, b.store,
       c.at, c.line, c.in_line, c.size, c.digest, c.codec, c.body, c.object, c.object_at, c.object_size
{from}
  LEFT JOIN LATERAL (
       SELECT array_agg(i.at) AS at,
              array_agg(i.line) AS line,
              array_agg(i.in_line) AS in_line,
              array_agg(i.size) AS size,
              array_agg(i.digest) AS digest,
              array_agg(i.codec) AS codec,
              array_agg(CASE WHEN i.wanted AND i.place <= $8 THEN i.body END) AS body,
              array_agg(i.object) AS object,
              array_agg(i.object_at) AS object_at,
              array_agg(i.object_size) AS object_size
         FROM (SELECT w.*, count(*) FILTER (WHERE w.wanted) OVER (ORDER BY w.n) AS place
                 FROM (SELECT n, at, line, in_line, size, digest, codec, body, object, object_at, object_size,
                              size = b.bytes
                              OR at < $5 AND at + size > $4
                              OR line <= $7 AND coalesce(lead(line) OVER (ORDER BY n), b.lines) >= $6 AS wanted
                         FROM result_chunks
                        WHERE tenant_id = b.tenant_id AND session_key = coalesce(b.held_in, b.session_key)
                          AND body_id = b.id) w
                ORDER BY w.n) i
       ) c ON true
{where}
