ALTER TABLE checkpoints DROP COLUMN made_after;
