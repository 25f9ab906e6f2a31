DROP TABLE webhook_turns, webhook_deliveries, webhook_secrets, webhooks;
