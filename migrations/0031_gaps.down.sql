ALTER TABLE sessions DROP COLUMN gap_seq;
