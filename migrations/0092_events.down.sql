DROP TABLE events, event_heads;
DROP FUNCTION event_number;
