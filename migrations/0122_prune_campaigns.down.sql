DROP FUNCTION prune_campaigns(interval, integer);
