DROP TABLE session_failures;
DROP TABLE workers;
