ALTER TABLE policies
    DROP COLUMN caps_over;

ALTER TABLE messages
    DROP COLUMN view_tokens;
