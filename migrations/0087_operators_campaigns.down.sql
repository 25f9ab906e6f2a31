DROP TABLE campaigns;
