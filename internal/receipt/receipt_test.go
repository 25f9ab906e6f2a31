package receipt_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/receipt"
)

func key(fill byte) receipt.Key {
	return receipt.NewKey(bytes.Repeat([]byte{fill}, ed25519.SeedSize))
}

// known returns the public key of a key, and nothing for other ids.
func known(k receipt.Key) func(string) ed25519.PublicKey {
	return func(id string) ed25519.PublicKey {
		if id == receipt.KeyID(k.Public()) {
			return k.Public()
		}
		return nil
	}
}

func TestAReceiptSaysWhatWasSignedAndNothingElse(t *testing.T) {
	t.Parallel()
	subject := key(1).Digest([]byte("u1"))
	r := receipt.Receipt{
		Version: receipt.Version, ID: uuid.New(), Kind: "subject", FinishedAt: time.Now().UTC().Round(time.Microsecond), Subject: &subject,
		Erased: receipt.Erased{Sessions: 2, Messages: 7}, Sessions: []uuid.UUID{uuid.New(), uuid.New()}, Held: []uuid.UUID{},
	}
	text, err := receipt.Sign(&r, key(1))
	if err != nil {
		t.Fatal(err)
	}
	if read, err := receipt.Read(text, known(key(1))); err != nil || !reflect.DeepEqual(read, r) {
		t.Errorf("read %+v, %v, not %+v", read, err, r)
	}
	if _, err := receipt.Read(text, known(key(2))); !errors.Is(err, receipt.ErrKey) {
		t.Errorf("of another installation: %v", err)
	}
	forged, _ := receipt.Sign(&r, key(2))
	parts, others := strings.Split(text, "."), strings.Split(forged, ".")
	payload, _ := base64.RawURLEncoding.DecodeString(parts[1])
	fewer := base64.RawURLEncoding.EncodeToString(bytes.Replace(payload, []byte(`"messages":7`), []byte(`"messages":6`), 1))
	for name, c := range map[string]struct {
		text string
		want error
	}{
		"changed":            {parts[0] + "." + fewer + "." + parts[2], receipt.ErrSignature},
		"another signature":  {parts[0] + "." + parts[1] + "." + others[2], receipt.ErrSignature},
		"no signature":       {parts[0] + "." + parts[1] + ".", receipt.ErrSignature},
		"two parts":          {parts[0] + "." + parts[1], receipt.ErrNone},
		"no base64":          {text + "=", receipt.ErrNone},
		"another algorithm":  {base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","typ":"varve-receipt+jwt"}`)) + "." + parts[1] + ".", receipt.ErrNone},
		"what is no receipt": {"", receipt.ErrNone},
	} {
		if _, err := receipt.Read(c.text, known(key(1))); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestADigestTellsNothingToThoseWithoutTheKey(t *testing.T) {
	t.Parallel()
	first, again := key(1).Digest([]byte("u1")), key(1).Digest([]byte("u1"))
	if first != again || first == key(2).Digest([]byte("u1")) {
		t.Error("a digest is not that of its text under its key")
	}
	var read receipt.Digest
	want := key(1).Digest([]byte("u1"))
	text, _ := want.MarshalText()
	if err := read.UnmarshalText(text); err != nil || read != want {
		t.Errorf("%s is read as %v, %v", text, read, err)
	}
	if err := read.UnmarshalText(text[1:]); err == nil {
		t.Error("half a digest is read")
	}
}
