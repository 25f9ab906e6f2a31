ALTER TABLE archive_parts DROP COLUMN view_end;
