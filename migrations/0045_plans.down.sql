ALTER TABLE replays DROP COLUMN progress;
CREATE INDEX import_lines_rejected ON import_lines (tenant_id, import_id, n) WHERE outcome = 'rejected';
DROP INDEX findings_newest, import_lines_outcome, session_tokens_newest, recalls_checkpoint;
