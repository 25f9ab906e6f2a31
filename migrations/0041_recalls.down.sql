DROP INDEX checkpoints_created;
DROP TABLE recalls;
