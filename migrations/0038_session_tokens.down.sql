DROP TABLE session_tokens;
