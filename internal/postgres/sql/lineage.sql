-- The manifests of checkpoint @n and of those that it builds on, back to the log. A base always has the lower number, so
-- the order of the numbers is that of the lineage.
WITH RECURSIVE lineage AS (
    SELECT n, base_n, manifest
      FROM checkpoints
     WHERE tenant_id = @tenant AND session_key = @session AND n = @n
    UNION ALL
    SELECT c.n, c.base_n, c.manifest
      FROM lineage l
      JOIN checkpoints c ON c.tenant_id = @tenant AND c.session_key = @session AND c.n = l.base_n
)
SELECT manifest
  FROM lineage
 ORDER BY n DESC
