DROP FUNCTION forget_in_campaigns(jsonb, text);
DROP TABLE campaigns;
