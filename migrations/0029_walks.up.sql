-- What a reader must know of a message, and of a checkpoint, to tell without opening them whether a view is valid as it is
-- stored. NULL is not known.
ALTER TABLE messages
    ADD COLUMN fact text;
ALTER TABLE checkpoints
    ADD COLUMN walk bytea;
