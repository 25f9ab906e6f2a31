-- The last tenth of its sessions of which a recompaction has told that they are done.
ALTER TABLE recompactions ADD COLUMN told smallint NOT NULL DEFAULT 0;
