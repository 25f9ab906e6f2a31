DROP POLICY as_appended ON messages;

DROP TRIGGER messages_seq_check ON messages;
DROP TRIGGER messages_tokens_check ON messages;
DROP TRIGGER messages_removed_check ON messages;
DROP TRIGGER messages_view_check ON messages;
DROP TRIGGER messages_packed_check ON messages;

ALTER TABLE messages
    ADD CONSTRAINT messages_seq_check CHECK (seq > 0),
    ADD CONSTRAINT messages_tokens_check CHECK (tokens >= 0),
    ADD CONSTRAINT messages_check1 CHECK (removed_seq > seq),
    ADD CONSTRAINT messages_check2 CHECK ((removed_at IS NULL) = (removed_seq IS NULL)),
    ADD CONSTRAINT messages_view_check CHECK ((view_body IS NULL) = (view_tokens IS NULL) OR body IS NULL),
    ADD CONSTRAINT messages_view_tokens_check CHECK (view_tokens >= 0),
    ADD CONSTRAINT messages_packed_check CHECK ((body IS NULL) = (shape = E'\x1a') AND (body IS NULL) = (bytes IS NOT NULL));

DROP TRIGGER sessions_id_check ON sessions;
DROP TRIGGER sessions_window_tokens_check ON sessions;
DROP TRIGGER sessions_overhead_tokens_check ON sessions;
DROP TRIGGER sessions_window_source_check ON sessions;
DROP TRIGGER sessions_armed_threshold_check ON sessions;
DROP TRIGGER sessions_calibration_check ON sessions;

ALTER TABLE sessions
    ADD CONSTRAINT sessions_id_check CHECK (octet_length(id) BETWEEN 1 AND 255),
    ADD CONSTRAINT sessions_window_tokens_check CHECK (window_tokens > 0),
    ADD CONSTRAINT sessions_overhead_tokens_check CHECK (overhead_tokens >= 0),
    ADD CONSTRAINT sessions_window_source_check CHECK (window_source IN ('request', 'model', 'default')),
    ADD CONSTRAINT sessions_armed_threshold_check CHECK (armed_threshold BETWEEN 1 AND 3),
    ADD CONSTRAINT sessions_calibration_check CHECK (calibration BETWEEN 0.5 AND 3);

DROP FUNCTION refuse_row();
