-- Three columns get the names that the code and the documentation use. Their values stay as they are. No program of
-- schema 29 works on schema 30, or the other way round: stop all processes, migrate, start the new ones (ADR 0020).
ALTER TABLE sessions RENAME COLUMN wake TO armed_threshold;
ALTER TABLE sessions RENAME CONSTRAINT sessions_wake_check TO sessions_armed_threshold_check;
ALTER TABLE messages RENAME COLUMN fact TO shape;
ALTER TABLE checkpoints RENAME COLUMN walk TO validator_state;
