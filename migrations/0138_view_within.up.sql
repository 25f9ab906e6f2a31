-- The view of a cold session begins the first part of its archive, and ends there at this byte: reads of it leave the
-- session where it is. Archives from before have it behind their last part, with view_size.
ALTER TABLE archive_parts ADD COLUMN view_end integer;
