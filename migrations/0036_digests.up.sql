-- What is stored is proven to be what came in. messages.digest is the SHA-256 of body, written with it. body_digest is
-- that of all that is needed to serve a checkpoint, state_digest that of its state. Rows from before have none and are
-- not checked; varve verify --repair writes what is missing.
--
-- damaged_n is the checkpoint of a session whose damage has asked for a compaction from the log already.
ALTER TABLE messages
    ADD COLUMN digest bytea;

ALTER TABLE checkpoints
    ADD COLUMN body_digest  bytea CHECK (octet_length(body_digest) = 32),
    ADD COLUMN state_digest bytea CHECK (octet_length(state_digest) = 32);

ALTER TABLE sessions
    ADD COLUMN damaged_n integer NOT NULL DEFAULT 0;

ALTER TABLE runs
    DROP CONSTRAINT runs_cause_check,
    ADD CONSTRAINT runs_cause_check CHECK (cause IN ('threshold', 'hard', 'idle', 'manual', 'sweep', 'follow_up', 'recompaction', 'restore', 'damage'));
