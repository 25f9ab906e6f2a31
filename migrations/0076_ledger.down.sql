DROP TABLE usage_sessions;
DROP TABLE usage_days;
