-- PostgreSQL reads each CHECK of a table from its text again in every statement that writes to it, which was a tenth of
-- an append. The rules of sessions and messages are triggers of the columns that they are about, none of which an
-- append sets, with the names of the CHECKs that they replace. What is inserted into messages is checked by a policy,
-- which PostgreSQL keeps parsed; it binds every role that row-level security binds.
CREATE FUNCTION refuse_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'new row for relation "%" violates check constraint "%"', TG_TABLE_NAME, TG_NAME
        USING ERRCODE = 'check_violation', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME, CONSTRAINT = TG_NAME;
END
$$;

ALTER TABLE sessions
    DROP CONSTRAINT sessions_id_check,
    DROP CONSTRAINT sessions_window_tokens_check,
    DROP CONSTRAINT sessions_overhead_tokens_check,
    DROP CONSTRAINT sessions_window_source_check,
    DROP CONSTRAINT sessions_armed_threshold_check,
    DROP CONSTRAINT sessions_calibration_check;

CREATE TRIGGER sessions_id_check
    BEFORE INSERT OR UPDATE OF id ON sessions
    FOR EACH ROW WHEN (octet_length(NEW.id) NOT BETWEEN 1 AND 255)
    EXECUTE FUNCTION refuse_row();

CREATE TRIGGER sessions_window_tokens_check
    BEFORE INSERT OR UPDATE OF window_tokens ON sessions
    FOR EACH ROW WHEN (NEW.window_tokens <= 0)
    EXECUTE FUNCTION refuse_row();

CREATE TRIGGER sessions_overhead_tokens_check
    BEFORE INSERT OR UPDATE OF overhead_tokens ON sessions
    FOR EACH ROW WHEN (NEW.overhead_tokens < 0)
    EXECUTE FUNCTION refuse_row();

CREATE TRIGGER sessions_window_source_check
    BEFORE INSERT OR UPDATE OF window_source ON sessions
    FOR EACH ROW WHEN (NEW.window_source NOT IN ('request', 'model', 'default'))
    EXECUTE FUNCTION refuse_row();

CREATE TRIGGER sessions_armed_threshold_check
    BEFORE INSERT OR UPDATE OF armed_threshold ON sessions
    FOR EACH ROW WHEN (NEW.armed_threshold NOT BETWEEN 1 AND 3)
    EXECUTE FUNCTION refuse_row();

CREATE TRIGGER sessions_calibration_check
    BEFORE INSERT OR UPDATE OF calibration ON sessions
    FOR EACH ROW WHEN (NEW.calibration NOT BETWEEN 0.5 AND 3)
    EXECUTE FUNCTION refuse_row();

ALTER TABLE messages
    DROP CONSTRAINT messages_seq_check,
    DROP CONSTRAINT messages_tokens_check,
    DROP CONSTRAINT messages_check1,
    DROP CONSTRAINT messages_check2,
    DROP CONSTRAINT messages_view_check,
    DROP CONSTRAINT messages_view_tokens_check,
    DROP CONSTRAINT messages_packed_check;

CREATE POLICY as_appended ON messages AS RESTRICTIVE FOR INSERT
    WITH CHECK (seq > 0
                AND tokens >= 0
                AND shape <> E'\x1a'
                AND body IS NOT NULL
                AND bytes IS NULL
                AND (removed_at IS NULL) = (removed_seq IS NULL)
                AND (removed_seq > seq) IS NOT FALSE
                AND (view_body IS NULL) = (view_tokens IS NULL)
                AND (view_tokens >= 0) IS NOT FALSE);

CREATE TRIGGER messages_seq_check
    BEFORE UPDATE OF seq ON messages
    FOR EACH ROW WHEN (NEW.seq <= 0)
    EXECUTE FUNCTION refuse_row();

CREATE TRIGGER messages_tokens_check
    BEFORE UPDATE OF tokens ON messages
    FOR EACH ROW WHEN (NEW.tokens < 0)
    EXECUTE FUNCTION refuse_row();

CREATE TRIGGER messages_removed_check
    BEFORE UPDATE OF removed_at, removed_seq ON messages
    FOR EACH ROW WHEN (NEW.removed_seq <= NEW.seq OR (NEW.removed_at IS NULL) <> (NEW.removed_seq IS NULL))
    EXECUTE FUNCTION refuse_row();

CREATE TRIGGER messages_view_check
    BEFORE UPDATE OF body, view_body, view_tokens ON messages
    FOR EACH ROW WHEN (NEW.view_tokens < 0
                       OR (NEW.view_body IS NULL) <> (NEW.view_tokens IS NULL) AND NEW.body IS NOT NULL)
    EXECUTE FUNCTION refuse_row();

CREATE TRIGGER messages_packed_check
    BEFORE UPDATE OF body, shape, bytes ON messages
    FOR EACH ROW WHEN ((NEW.body IS NULL) <> (NEW.shape = E'\x1a') OR (NEW.body IS NULL) <> (NEW.bytes IS NOT NULL))
    EXECUTE FUNCTION refuse_row();
