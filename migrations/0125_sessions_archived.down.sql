DROP INDEX sessions_archived;
