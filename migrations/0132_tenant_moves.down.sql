DROP FUNCTION enter_move(text, timestamptz);
DROP TABLE tenant_moves;
