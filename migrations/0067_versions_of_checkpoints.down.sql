-- The columns are those of 0050, whose values stay.
SELECT 1;
