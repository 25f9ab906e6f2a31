DELETE FROM search_texts WHERE seq = 0;
DROP INDEX uploads_searched_in_part;
ALTER TABLE uploads
    DROP COLUMN searched_in_part,
    DROP COLUMN searched_in;
