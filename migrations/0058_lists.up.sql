-- Lists whose pages read more than they show: the results of one tool or category among all of a session, and the
-- failures of a tenant in the order in which they are shown.
CREATE INDEX results_tool ON results (tenant_id, session_key, tool_name, seq, part);
CREATE INDEX results_category ON results (tenant_id, session_key, category, seq, part);
CREATE INDEX session_failures_newest ON session_failures (tenant_id, since DESC, session_key DESC);

-- The id that a provider gave a message and that answers keep, which GET /v1/conversations/{id}/items/{item} looks for;
-- NULL for none. Sessions made before items_since may have messages with such an id and without the column: those that
-- are there, and for a day those that a process of the version before makes.
ALTER TABLE messages ADD COLUMN item_id text;
CREATE INDEX messages_item ON messages (tenant_id, session_key, item_id) WHERE item_id IS NOT NULL;
ALTER TABLE installation ADD COLUMN items_since timestamptz NOT NULL DEFAULT '-infinity';
ALTER TABLE sessions NO FORCE ROW LEVEL SECURITY;
UPDATE installation
   SET items_since = now() + interval '1 day'
 WHERE EXISTS (SELECT FROM sessions);
ALTER TABLE sessions FORCE ROW LEVEL SECURITY;

-- Where one recompaction has most rows of its table, statistics say that each has, and the foreign key reads all of the
-- tenant's rows to find out that a recompaction has none any more. Averages of 100 rows lead it to the right index.
ALTER TABLE recompaction_sessions ALTER COLUMN recompaction_id SET (n_distinct = -0.01);
ALTER TABLE replay_sessions ALTER COLUMN replay_id SET (n_distinct = -0.01);
ALTER TABLE replay_outcomes ALTER COLUMN replay_id SET (n_distinct = -0.01);
ALTER TABLE import_lines ALTER COLUMN import_id SET (n_distinct = -0.01);
