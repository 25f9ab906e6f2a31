DROP INDEX usage_sessions_asleep;
