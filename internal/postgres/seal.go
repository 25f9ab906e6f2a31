package postgres

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/zframe"
)

// BodyDigestSQL returns, in SQL, the SHA-256 of all that is needed to serve checkpoint c: what it covers, its body, the
// validator's state, the open calls and the units. The database makes it, because it writes units in a way of its own;
// View.checkCheckpoint makes the same of what it has read.
func BodyDigestSQL(c string) string {
	state := `coalesce(` + c + `.validator_state, ''::bytea)`
	return `sha256(int8send(` + c + `.through_seq) || int8send(` + c + `.body_size::bigint)
		|| int8send(octet_length(` + c + `.body)::bigint) || int8send(octet_length(` + state + `)::bigint)
		|| ` + state + ` || ` + c + `.body
		|| convert_to(array_to_string(` + c + `.open_calls, E'\x1d') || E'\x1e' || ` + c + `.units::text, 'UTF8'))`
}

// wholeSQL returns, in SQL, whether checkpoint c is what was written, as far as it has a digest. That is NULL without a
// body.
func wholeSQL(c string) string {
	return `(` + c + `.body_digest IS NULL OR ` + c + `.body_digest = ` + BodyDigestSQL(c) + `)`
}

// sealSQL writes the digests of checkpoint $3 of a session.
var sealSQL = `
	UPDATE checkpoints c
	   SET body_digest = ` + BodyDigestSQL(`c`) + `, state_digest = sha256(c.state)
	 WHERE c.tenant_id = $1 AND c.session_key = $2 AND c.n = $3`

// fillProofsSQL writes the digests of a session's checkpoints that have none.
var fillProofsSQL = `
	UPDATE checkpoints c
	   SET body_digest = ` + BodyDigestSQL(`c`) + `, state_digest = sha256(c.state)
	 WHERE c.tenant_id = $1 AND c.session_key = $2 AND c.body_digest IS NULL AND c.body IS NOT NULL`

// proofSQL is View.Proof of a checkpoint.
const proofSQL = `CASE WHEN body_digest IS NULL THEN '\x00'::bytea ELSE '\x01'::bytea || body_digest END`

var (
	errNoCheckpoint = errors.New("it is not there")
	errOtherDigest  = errors.New("it has another digest than when it was written")
)

// checkCheckpoint returns a *session.DamagedError unless the checkpoint of a view, which was read just now, is what was
// written. One from before there were digests must at least be readable.
func (v *View) checkCheckpoint() error {
	switch {
	case len(v.Proof) == 0:
		return session.DamagedCheckpoint(v.Checkpoint, errNoCheckpoint)
	case v.Proof[0] == 0:
		if err := isReadable(v.Body, v.Size); err != nil {
			return session.DamagedCheckpoint(v.Checkpoint, err)
		}
		return nil
	case string(v.bodyDigest()) != string(v.Proof[1:]):
		return session.DamagedCheckpoint(v.Checkpoint, errOtherDigest)
	}
	return nil
}

// isReadable returns an error unless a body can be decompressed. That alone is looked at of one from before there were
// digests.
func isReadable(body []byte, size int) error {
	_, err := zframe.Decompress(nil, body, size)
	return err
}

// bodyDigest makes what BodyDigestSQL makes.
func (v *View) bodyDigest() []byte {
	head := make([]byte, 0, 64+len(v.Validator))
	for _, n := range []int64{v.Through, int64(v.Size), int64(len(v.Body)), int64(len(v.Validator))} {
		head = binary.BigEndian.AppendUint64(head, uint64(n))
	}
	h := sha256.New()
	for _, part := range [][]byte{append(head, v.Validator...), v.Body, v.OpenCalls, {betweenShapes}, v.Units} {
		_, _ = h.Write(part)
	}
	return h.Sum(nil)
}

// damageOf returns the damage of a checkpoint that the database has looked at.
func damageOf(n int, whole, stateWhole bool) error {
	switch {
	case !whole:
		return session.DamagedCheckpoint(n, errOtherDigest)
	case !stateWhole:
		return session.DamagedState(n, errOtherDigest)
	}
	return nil
}
