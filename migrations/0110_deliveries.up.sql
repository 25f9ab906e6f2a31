-- The first delivery of each topic of a webhook is found without a look at those that wait behind it.
CREATE INDEX webhook_deliveries_first ON webhook_deliveries (tenant_id, webhook_id, topic, n);
