package session

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"hash/crc32"
	"math/big"
	"time"

	"github.com/google/uuid"
)

// An API key reads vk_<tenant>_<secret><checksum>: the tenant's id as 32 hex digits, 30 random base62 characters (178
// bits), and the CRC-32 of all before it as 6 base62 characters. A session token reads the same with st_. Secret
// scanners find them with KeyPattern and TokenPattern and drop look-alikes by the checksum; we refuse those without
// asking the database.
const (
	keyPrefix      = "vk_"
	tokenPrefix    = "st_"
	keyTenant      = len(keyPrefix)
	keySecret      = keyTenant + 32 + 1
	keyChecksum    = keySecret + 30
	keyLength      = keyChecksum + 6
	base62         = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	checksumDigits = keyLength - keyChecksum
)

// KeyPattern and TokenPattern are the regular expressions by which a secret scanner recognises a key and a session
// token.
const (
	KeyPattern   = `vk_[0-9a-f]{32}_[0-9A-Za-z]{36}`
	TokenPattern = `st_[0-9a-f]{32}_[0-9A-Za-z]{36}`
)

// APIKey is an API key as it is stored: all but its text.
type APIKey struct {
	ID        uuid.UUID  `json:"id"`
	Name      string     `json:"name"`
	Last4     string     `json:"last4"`
	CreatedAt time.Time  `json:"created_at"`
	ExpiresAt *time.Time `json:"expires_at"`
	RevokedAt *time.Time `json:"revoked_at"`
}

// NewAPIKey returns the text of a new API key of a tenant. Only its holder may keep the text; ParseKey returns what is
// stored.
func NewAPIKey(tenant uuid.UUID) string { return newSecret(keyPrefix, tenant) }

// NewTokenText returns the text of a new session token of a tenant. Only its holder may keep the text; ParseToken
// returns what is stored.
func NewTokenText(tenant uuid.UUID) string { return newSecret(tokenPrefix, tenant) }

func newSecret(prefix string, tenant uuid.UUID) string {
	b := make([]byte, 0, keyLength)
	b = append(b, prefix...)
	b = hex.AppendEncode(b, tenant[:])
	b = append(b, '_')
	for len(b) < keyChecksum {
		n, err := rand.Int(rand.Reader, big.NewInt(int64(len(base62))))
		if err != nil {
			panic(err) // crypto/rand does not fail
		}
		b = append(b, base62[n.Int64()])
	}
	sum := checksum(b)
	return string(append(b, sum[:]...))
}

// ParseKey parses the text of an API key. It returns the key's tenant and the SHA-256 under which the database has the
// key; ErrUnauthorized if the text is not a key, which its checksum shows.
func ParseKey(text string) (tenant uuid.UUID, digest [sha256.Size]byte, err error) {
	return parseSecret(keyPrefix, text)
}

// ParseToken parses the text of a session token like ParseKey that of a key.
func ParseToken(text string) (tenant uuid.UUID, digest [sha256.Size]byte, err error) {
	return parseSecret(tokenPrefix, text)
}

func parseSecret(prefix, text string) (tenant uuid.UUID, digest [sha256.Size]byte, err error) {
	if len(text) != keyLength || text[:keyTenant] != prefix || text[keySecret-1] != '_' {
		return tenant, digest, ErrUnauthorized
	}
	if sum := checksum([]byte(text[:keyChecksum])); string(sum[:]) != text[keyChecksum:] {
		return tenant, digest, ErrUnauthorized
	}
	if _, err := hex.Decode(tenant[:], []byte(text[keyTenant:keySecret-1])); err != nil {
		return uuid.UUID{}, digest, ErrUnauthorized
	}
	return tenant, sha256.Sum256([]byte(text)), nil
}

func checksum(text []byte) (digits [checksumDigits]byte) {
	n := crc32.ChecksumIEEE(text)
	for i := range digits {
		digits[checksumDigits-1-i] = base62[n%62]
		n /= 62
	}
	return digits
}
