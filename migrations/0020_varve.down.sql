DROP TABLE idempotency, runs, checkpoint_results, results, result_bodies, checkpoints, messages, sessions, policies, api_keys, tenants;
