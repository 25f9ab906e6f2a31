-- Behind the last part of a cold session's archive, in the same object, its view lies, which has so many bytes: reads of
-- it leave the session where it is.
ALTER TABLE archive_parts ADD COLUMN view_size integer;
