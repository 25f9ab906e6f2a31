DROP TABLE recompaction_sessions, recompactions;
