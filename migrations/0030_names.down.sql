ALTER TABLE checkpoints RENAME COLUMN validator_state TO walk;
ALTER TABLE messages RENAME COLUMN shape TO fact;
ALTER TABLE sessions RENAME CONSTRAINT sessions_armed_threshold_check TO sessions_wake_check;
ALTER TABLE sessions RENAME COLUMN armed_threshold TO wake;
