-- The last seq of the session's log before the transaction that made the checkpoint: a view as of a seq begins with the
-- newest checkpoint that was made before that seq was taken. NULL in rows of older programs, which go by their time.
ALTER TABLE checkpoints ADD COLUMN made_after bigint;
