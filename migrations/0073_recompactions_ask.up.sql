-- Whether a recompaction has models asked for the summaries that are not kept.
ALTER TABLE recompactions ADD COLUMN ask boolean NOT NULL DEFAULT false;
