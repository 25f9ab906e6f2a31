// Package receipt says what was erased, in a form that can be checked without Varve: a signed receipt is a JSON Web
// Signature (RFC 7515, compact) whose payload is a Receipt, signed with Ed25519 (RFC 8037). It is pure.
//
// Start at Sign and Read. Package postgres keeps the keys, package jobs signs.
package receipt

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Version is the version of the form.
const Version = 1

// Receipt is what a signed receipt says. A session is named by its key, which Varve made: a receipt says nothing of
// what was erased but its size. That of a tenant names no session: all of the tenant is gone. Its Audit is of the
// operators' trail, and Ended the last row that the tenant's own had.
type Receipt struct {
	Version      int         `json:"version"`
	ID           uuid.UUID   `json:"id"` // of the erasure
	Kind         string      `json:"kind"`
	Installation uuid.UUID   `json:"installation"`
	Tenant       uuid.UUID   `json:"tenant"`
	By           By          `json:"by"`
	AskedAt      time.Time   `json:"asked_at"`
	FinishedAt   time.Time   `json:"finished_at"`
	Erased       Erased      `json:"erased"`
	Sessions     []uuid.UUID `json:"sessions"` // that were erased
	Held         []uuid.UUID `json:"held"`     // that a legal hold has kept
	Subject      *Digest     `json:"subject"`  // HMAC of the metadata that selected the sessions
	Digest       Digest      `json:"digest"`   // HMAC of the digests of all that was erased
	Audit        Head        `json:"audit"`    // of the audit trail, after the row of the last session or the tenant
	Ended        *Head       `json:"ended,omitempty"`
	Backups      Backups     `json:"backups"`
}

// By is who asked for an erasure.
type By struct {
	Actor   string     `json:"actor"` // as the audit trail has it
	ID      *uuid.UUID `json:"id"`    // of the key
	Request string     `json:"request_id,omitempty"`
}

// Erased counts what was erased.
type Erased struct {
	Sessions    int64 `json:"sessions"`
	Messages    int64 `json:"messages"`
	Results     int64 `json:"results"`
	Bodies      int64 `json:"bodies"` // of results, those aside that forks still have
	Checkpoints int64 `json:"checkpoints"`
	Bytes       int64 `json:"bytes"`   // of messages and bodies
	Objects     int64 `json:"objects"` // in result stores
}

// Head is a place in an audit trail.
type Head struct {
	N    int64  `json:"n"`
	Hash string `json:"hash"`
}

// Backups says until when a backup may still have what was erased.
type Backups struct {
	KeptSeconds *int64     `json:"kept_seconds"` // nil: the operator has not said how long
	GoneBy      *time.Time `json:"gone_by"`
}

// Digest is a SHA-256, or an HMAC with it.
type Digest [sha256.Size]byte

// MarshalText writes a digest in hexadecimal digits.
func (d Digest) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(d[:])), nil }

// UnmarshalText reads a digest as MarshalText writes it.
func (d *Digest) UnmarshalText(text []byte) error {
	b, err := hex.DecodeString(string(text))
	if err != nil || len(b) != len(d) {
		return fmt.Errorf("%.80q is no digest: it must have %d hexadecimal digits", text, 2*len(d))
	}
	copy(d[:], b)
	return nil
}

// Key signs receipts.
type Key struct{ seed []byte }

// NewKey returns the key of a seed of ed25519.SeedSize bytes.
func NewKey(seed []byte) Key { return Key{seed} }

func (k Key) private() ed25519.PrivateKey { return ed25519.NewKeyFromSeed(k.seed) }

// Public returns what verifies the key's signatures.
func (k Key) Public() ed25519.PublicKey { return k.private().Public().(ed25519.PublicKey) }

// Digest returns an HMAC of what a receipt must not reveal to those who can guess it. Only who has the key can compute
// it again.
func (k Key) Digest(secret []byte) (d Digest) {
	derived := sha256.Sum256(append([]byte("varve receipt digest\x00"), k.seed...))
	mac := hmac.New(sha256.New, derived[:])
	mac.Write(secret)
	copy(d[:], mac.Sum(nil))
	return d
}

// KeyID returns the id of a key.
func KeyID(public ed25519.PublicKey) string {
	sum := sha256.Sum256(public)
	return hex.EncodeToString(sum[:8])
}

// header is the first part of a signed receipt.
type header struct {
	Algorithm string `json:"alg"`
	KeyID     string `json:"kid"`
	Type      string `json:"typ"`
}

const (
	algorithm = "EdDSA"
	mediaType = "varve-receipt+jwt"
)

// Sign returns the receipt with its signature.
func Sign(r *Receipt, key Key) (string, error) {
	head, err := json.Marshal(header{algorithm, KeyID(key.Public()), mediaType})
	if err != nil {
		return "", err
	}
	body, err := json.Marshal(r)
	if err != nil {
		return "", err
	}
	text := encode(head) + "." + encode(body)
	return text + "." + encode(ed25519.Sign(key.private(), []byte(text))), nil
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// The errors of Read.
var (
	ErrNone      = errors.New("this is no receipt: it must be three parts with dots between them")
	ErrKey       = errors.New("the receipt is signed with a key that this installation does not have")
	ErrSignature = errors.New("the signature is not that of what the receipt says: it was changed")
)

// Read returns what a signed receipt says if its signature is good. public returns the key with an id, nil if there is
// none.
//
// Errors: ErrNone, ErrKey, ErrSignature.
func Read(text string, public func(id string) ed25519.PublicKey) (r Receipt, err error) {
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return r, ErrNone
	}
	var decoded [3][]byte
	for i, part := range parts {
		if decoded[i], err = base64.RawURLEncoding.Strict().DecodeString(part); err != nil {
			return r, ErrNone
		}
	}
	var head header
	if json.Unmarshal(decoded[0], &head) != nil || head.Algorithm != algorithm || head.Type != mediaType {
		return r, ErrNone
	}
	key := public(head.KeyID)
	switch {
	case len(key) != ed25519.PublicKeySize:
		return r, fmt.Errorf("%w: %.40q", ErrKey, head.KeyID)
	case !ed25519.Verify(key, []byte(parts[0]+"."+parts[1]), decoded[2]):
		return r, ErrSignature
	}
	if err := json.Unmarshal(decoded[1], &r); err != nil || r.Version != Version {
		return r, ErrNone
	}
	return r, nil
}
