-- All that the role of the serving processes may do. There is no TRUNCATE, which row-level security does not bind, and
-- messages and versions of policies are written once: of a message, only that it was removed is noted later, and its
-- bytes may move into a pack (a trigger refuses to put any in).
GRANT USAGE ON SCHEMA public TO varve_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO varve_app;
GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO varve_app;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO varve_app;
REVOKE INSERT, UPDATE, DELETE ON schema_migrations FROM varve_app;
REVOKE UPDATE ON messages, policy_versions FROM varve_app;
GRANT UPDATE (removed_at, removed_seq, body, view_body, digest, calls, answers, shape, bytes) ON messages TO varve_app;
