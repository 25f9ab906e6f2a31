-- The results stay, with their bodies: only what is not finished yet is lost.
ALTER TABLE results
    DROP CONSTRAINT results_seq_check;

DROP TABLE uploads;
