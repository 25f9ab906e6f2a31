package console

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"sync"
	"time"
)

// How long a sign-in lasts: without a request, and at most.
const (
	idleEnd = time.Hour
	lastEnd = 12 * time.Hour
	renewal = time.Minute // a cookie that is older is written anew
)

// signedIn is what a cookie holds. It is sealed, so that only a process with the same secret can read it, and the key
// is asked for at every request: when it is revoked, so is the sign-in.
type signedIn struct {
	ID    string    `json:"i"` // of this sign-in
	Key   string    `json:"k"`
	Name  string    `json:"n"` // of the key and of its tenant, as pages say whose it is
	Of    string    `json:"o"`
	Since time.Time `json:"s"`
	Seen  time.Time `json:"l"` // last
}

// ended reports whether the sign-in is over at a time.
func (in *signedIn) ended(now time.Time) bool {
	return now.Sub(in.Since) >= lastEnd || now.Sub(in.Seen) >= idleEnd || in.Seen.After(now.Add(renewal))
}

// sealer makes cookies and reads them.
type sealer struct{ aead cipher.AEAD }

// newSealer returns a sealer with keys of a secret; without one its cookies end with the process.
func newSealer(secret string) *sealer {
	if secret == "" {
		secret = rand.Text() + rand.Text()
	}
	key, err := hkdf.Key(sha256.New, []byte(secret), nil, "varve console cookie", 32)
	if err != nil {
		panic(err) // of lengths, which are constant
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err)
	}
	return &sealer{aead}
}

func (s *sealer) seal(in signedIn) string {
	text, err := json.Marshal(in)
	if err != nil {
		panic(err) // texts and times
	}
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, text, nil))
}

var errCookie = errors.New("the cookie is not one of this console")

func (s *sealer) open(cookie string) (in signedIn, err error) {
	sealed, err := base64.RawURLEncoding.DecodeString(cookie)
	if err != nil {
		return in, errCookie
	}
	text, err := s.aead.Open(nil, nil, sealed, nil)
	if err != nil {
		return in, errCookie
	}
	return in, json.Unmarshal(text, &in)
}

// signedOut are the sign-ins that a person has ended in this process: a copy of their cookies is of no use any more.
type signedOut struct {
	mu  sync.Mutex
	ids map[string]time.Time // when they would have ended by themselves
}

func (o *signedOut) add(in signedIn, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for id, end := range o.ids {
		if now.After(end) {
			delete(o.ids, id)
		}
	}
	o.ids[in.ID] = in.Since.Add(lastEnd)
}

func (o *signedOut) has(id string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.ids[id].IsZero()
}
