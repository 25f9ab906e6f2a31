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
// bits), and the CRC-32 of all before it as 6 base62 characters. A session token reads the same with st_, and an
// operator's key is vop_<secret><checksum>. Secret scanners find them with the patterns and drop look-alikes by the
// checksum; we refuse those without asking the database.
const (
	keyPrefix      = "vk_"
	tokenPrefix    = "st_"
	operatorPrefix = "vop_"
	keyTenant      = len(keyPrefix)
	keySecret      = keyTenant + 32 + 1
	secretDigits   = 30
	checksumDigits = 6
	keyLength      = keySecret + secretDigits + checksumDigits
	operatorLength = len(operatorPrefix) + secretDigits + checksumDigits
	base62         = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// The regular expressions by which a secret scanner recognises a key, a session token and an operator's key.
const (
	KeyPattern      = `vk_[0-9a-f]{32}_[0-9A-Za-z]{36}`
	TokenPattern    = `st_[0-9a-f]{32}_[0-9A-Za-z]{36}`
	OperatorPattern = `vop_[0-9A-Za-z]{36}`
)

// APIKey is an API key of a tenant as it is stored: all but its text.
type APIKey struct {
	ID         uuid.UUID  `json:"id"`
	Name       string     `json:"name"`
	Last4      string     `json:"last4"` // the last characters of the text
	Scopes     []Scope    `json:"scopes" schema:"[]KeyScope"`
	Replaces   *uuid.UUID `json:"replaces"` // the key that was rotated
	CreatedAt  time.Time  `json:"created_at"`
	ExpiresAt  *time.Time `json:"expires_at"`
	RevokedAt  *time.Time `json:"revoked_at"`
	LastUsedAt *time.Time `json:"last_used_at"` // up to 5 minutes late
}

// OwnKey is a key with the tenant that its holder acts for.
type OwnKey struct {
	Tenant     uuid.UUID `json:"tenant"`
	TenantName string    `json:"tenant_name"`
	APIKey
}

// Ended reports whether a key is refused since a moment before now.
func (k *APIKey) Ended(now time.Time) bool {
	return k.RevokedAt != nil || k.ExpiresAt != nil && !k.ExpiresAt.After(now)
}

// NewKey is an API key to be stored.
type NewKey struct {
	Name     string
	Text     string
	Scopes   []Scope
	Lifetime *time.Duration // nil: it does not expire
}

// OperatorKey is a key of an operator as it is stored: all but its text.
type OperatorKey struct {
	ID         uuid.UUID  `json:"id"`
	Name       string     `json:"name"`
	Last4      string     `json:"last4"` // the last characters of the text
	CreatedAt  time.Time  `json:"created_at"`
	ExpiresAt  *time.Time `json:"expires_at"`
	RevokedAt  *time.Time `json:"revoked_at"`
	LastUsedAt *time.Time `json:"last_used_at"` // up to 5 minutes late
}

// UseNoted is how much later than the last noted use of a key the next one is noted.
const UseNoted = 5 * time.Minute

// MaxLiveKeys is how many keys of one tenant may be valid at a time.
const MaxLiveKeys = 1000

// The bounds of what a caller says about keys.
const (
	MaxKeyLifetime = 10 * 365 * 24 * time.Hour
	MaxKeyOverlap  = 30 * 24 * time.Hour // how long a rotated key may live on
	KeyOverlap     = 24 * time.Hour      // and how long it does if nothing is said
)

// NewAPIKey returns the text of a new API key of a tenant. Only its holder may keep the text; ParseKey returns what is
// stored.
func NewAPIKey(tenant uuid.UUID) string { return newSecret(tenantHead(keyPrefix, tenant)) }

// NewTokenText returns the text of a new session token of a tenant. Only its holder may keep the text; ParseToken
// returns what is stored.
func NewTokenText(tenant uuid.UUID) string { return newSecret(tenantHead(tokenPrefix, tenant)) }

// NewOperatorKey returns the text of a new key of an operator. Only its holder may keep the text; ParseOperatorKey
// returns what is stored.
func NewOperatorKey() string { return newSecret([]byte(operatorPrefix)) }

func tenantHead(prefix string, tenant uuid.UUID) []byte {
	return append(hex.AppendEncode([]byte(prefix), tenant[:]), '_')
}

// newSecret returns a head with random characters and a checksum behind it.
func newSecret(b []byte) string {
	for range secretDigits {
		n, err := rand.Int(rand.Reader, big.NewInt(int64(len(base62))))
		if err != nil {
			panic(err) // crypto/rand does not fail
		}
		b = append(b, base62[n.Int64()])
	}
	sum := checksum(b)
	return string(append(b, sum[:]...))
}

// ParseKey parses the text of an API key. It returns the key's tenant and the SHA-256 that the database stores. It
// returns ErrUnauthorized if the text is not a key or its checksum is wrong.
func ParseKey(text string) (tenant uuid.UUID, digest [sha256.Size]byte, err error) {
	return parseSecret(keyPrefix, text)
}

// ParseToken parses the text of a session token like ParseKey that of a key.
func ParseToken(text string) (tenant uuid.UUID, digest [sha256.Size]byte, err error) {
	return parseSecret(tokenPrefix, text)
}

func parseSecret(prefix, text string) (tenant uuid.UUID, digest [sha256.Size]byte, err error) {
	if len(text) != keyLength || text[:keyTenant] != prefix || text[keySecret-1] != '_' || !summed(text) {
		return tenant, digest, ErrUnauthorized
	}
	if _, err := hex.Decode(tenant[:], []byte(text[keyTenant:keySecret-1])); err != nil {
		return uuid.UUID{}, digest, ErrUnauthorized
	}
	return tenant, sha256.Sum256([]byte(text)), nil
}

// ParseOperatorKey parses the text of an operator's key like ParseKey that of a key.
func ParseOperatorKey(text string) (digest [sha256.Size]byte, err error) {
	if len(text) != operatorLength || text[:len(operatorPrefix)] != operatorPrefix || !summed(text) {
		return digest, ErrUnauthorized
	}
	return sha256.Sum256([]byte(text)), nil
}

// summed reports whether a text ends with the checksum of what is before it.
func summed(text string) bool {
	end := len(text) - checksumDigits
	sum := checksum([]byte(text[:end]))
	return string(sum[:]) == text[end:]
}

func checksum(text []byte) (digits [checksumDigits]byte) {
	n := crc32.ChecksumIEEE(text)
	for i := range digits {
		digits[checksumDigits-1-i] = base62[n%62]
		n /= 62
	}
	return digits
}
