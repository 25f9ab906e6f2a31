-- A trigger that fires before an update has PostgreSQL lock each row of every update of its table, and write that to the
-- WAL, whichever columns it is for. One that fires afterwards costs nothing unless its WHEN is true.
CREATE OR REPLACE TRIGGER sessions_id_check
    AFTER INSERT OR UPDATE OF id ON sessions
    FOR EACH ROW
    WHEN (octet_length(NEW.id) < 1 OR octet_length(NEW.id) > 255)
    EXECUTE FUNCTION refuse_row();
CREATE OR REPLACE TRIGGER sessions_window_tokens_check
    AFTER INSERT OR UPDATE OF window_tokens ON sessions
    FOR EACH ROW
    WHEN (NEW.window_tokens <= 0)
    EXECUTE FUNCTION refuse_row();
CREATE OR REPLACE TRIGGER sessions_overhead_tokens_check
    AFTER INSERT OR UPDATE OF overhead_tokens ON sessions
    FOR EACH ROW
    WHEN (NEW.overhead_tokens < 0)
    EXECUTE FUNCTION refuse_row();
CREATE OR REPLACE TRIGGER sessions_window_source_check
    AFTER INSERT OR UPDATE OF window_source ON sessions
    FOR EACH ROW
    WHEN (NEW.window_source NOT IN ('request', 'model', 'default'))
    EXECUTE FUNCTION refuse_row();
CREATE OR REPLACE TRIGGER sessions_armed_threshold_check
    AFTER INSERT OR UPDATE OF armed_threshold ON sessions
    FOR EACH ROW
    WHEN (NEW.armed_threshold < 1 OR NEW.armed_threshold > 3)
    EXECUTE FUNCTION refuse_row();
CREATE OR REPLACE TRIGGER sessions_calibration_check
    AFTER INSERT OR UPDATE OF calibration ON sessions
    FOR EACH ROW
    WHEN (NEW.calibration < 0.5 OR NEW.calibration > 3)
    EXECUTE FUNCTION refuse_row();
CREATE OR REPLACE TRIGGER messages_seq_check
    AFTER UPDATE OF seq ON messages
    FOR EACH ROW
    WHEN (NEW.seq <= 0)
    EXECUTE FUNCTION refuse_row();
CREATE OR REPLACE TRIGGER messages_tokens_check
    AFTER UPDATE OF tokens ON messages
    FOR EACH ROW
    WHEN (NEW.tokens < 0)
    EXECUTE FUNCTION refuse_row();
CREATE OR REPLACE TRIGGER messages_removed_check
    AFTER UPDATE OF removed_at, removed_seq ON messages
    FOR EACH ROW
    WHEN (NEW.removed_seq <= NEW.seq OR (NEW.removed_at IS NULL) <> (NEW.removed_seq IS NULL))
    EXECUTE FUNCTION refuse_row();
CREATE OR REPLACE TRIGGER messages_view_check
    AFTER UPDATE OF body, view_body, view_tokens ON messages
    FOR EACH ROW
    WHEN (NEW.view_tokens < 0
       OR ((NEW.view_body IS NULL) <> (NEW.view_tokens IS NULL) AND NEW.body IS NOT NULL))
    EXECUTE FUNCTION refuse_row();
CREATE OR REPLACE TRIGGER messages_packed_check
    AFTER UPDATE OF body, shape, bytes ON messages
    FOR EACH ROW
    WHEN ((NEW.body IS NULL) <> (NEW.shape = E'\x1a')
       OR (NEW.body IS NULL) <> (NEW.bytes IS NOT NULL))
    EXECUTE FUNCTION refuse_row();
CREATE OR REPLACE TRIGGER messages_superseded_check
    AFTER UPDATE OF superseded_by, removed_seq ON messages
    FOR EACH ROW
    WHEN (NEW.superseded_by IS NOT NULL AND (NEW.superseded_by >= NEW.removed_seq) IS NOT TRUE)
    EXECUTE FUNCTION refuse_row();
CREATE OR REPLACE TRIGGER messages_body
    AFTER UPDATE OF body, view_body, bytes ON messages
    FOR EACH ROW
    WHEN (NEW.body IS NOT NULL)
    EXECUTE FUNCTION refuse_new_body();
