DROP INDEX webhook_deliveries_first;
