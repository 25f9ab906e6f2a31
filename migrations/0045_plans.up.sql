-- Lists whose pages read more than they show: the reads of a run's checkpoint, the tokens of a session, and the lines
-- of an import that have one outcome.
CREATE INDEX recalls_checkpoint ON recalls (tenant_id, session_key, checkpoint_n);
CREATE INDEX session_tokens_newest ON session_tokens (tenant_id, session_key, created_at DESC, id DESC);
CREATE INDEX import_lines_outcome ON import_lines (tenant_id, import_id, outcome, n);
DROP INDEX import_lines_rejected;
CREATE INDEX findings_newest ON findings (tenant_id, found_at DESC, session_key, n);

-- What became of the sessions of a replay, written down when it ends: a list of replays counted up to 1,000 sessions of
-- each. It is counted again where this is NULL.
ALTER TABLE replays ADD COLUMN progress jsonb;
