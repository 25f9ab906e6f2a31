-- What a reader must know of a checkpoint to tell without opening it whether the view that it begins is valid as it is
-- stored. NULL is not known.
ALTER TABLE checkpoints
    ADD COLUMN walk bytea;
