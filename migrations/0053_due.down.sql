DROP TABLE rounds;
DROP TABLE chores;
DROP TABLE due_sessions;
