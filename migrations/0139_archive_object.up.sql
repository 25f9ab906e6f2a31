-- An archive of one object, as nearly all are, has no row in archive_parts: its own row names the object, whose size is
-- "stored", and whose digest's digest is "digest". "tables" is written no more: what reads an archive counts its rows.
-- Objects are looked for by the session under whose prefix they lie.
ALTER TABLE session_archives ADD COLUMN object uuid;
ALTER TABLE session_archives ADD COLUMN view_end integer;
DROP INDEX archive_parts_object;
