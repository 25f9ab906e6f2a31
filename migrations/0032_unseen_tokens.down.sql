ALTER TABLE sessions
    DROP COLUMN unseen_tokens,
    DROP COLUMN shrunk_tokens;
