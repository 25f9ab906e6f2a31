-- Uploaded results are searched, too: searched_in is the language by whose rules the words of one are in search_texts,
-- with the seq 0 and the upload's number as the piece; NULL until a worker has looked at it.
ALTER TABLE uploads
    ADD COLUMN searched_in text,
    ADD COLUMN searched_in_part boolean NOT NULL DEFAULT false; -- only the beginning is indexed, or nothing of a damaged one

CREATE INDEX uploads_searched_in_part ON uploads (tenant_id) WHERE searched_in_part;
