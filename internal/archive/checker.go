package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
)

// Checker compares the lines of an archive with its ends and manifests. It can be stored between two lines, and
// continued in another process: see MarshalBinary.
type Checker struct {
	found      Manifest  // of all archives so far; it is not stored
	all        hash.Hash // of all lines
	whole, one hash.Hash // of the archive's and of its newest session's
	counts
}

type counts struct {
	Open                      bool // an archive has begun, and its manifest has not come
	Sessions, Messages        int64
	MessagesOfOne             int64
	AllState, Whole, OneState []byte // the hashes, while the Checker is stored
}

// NewChecker returns a Checker before the first line.
func NewChecker() *Checker {
	return &Checker{all: sha256.New(), whole: sha256.New(), one: sha256.New()}
}

// Damage is the error of an archive that was changed or cut off.
type Damage struct{ text string }

func (e *Damage) Error() string { return e.text }

// Line reads the next line, without its line feed, and its kind. It returns a *Damage if the line contradicts the lines
// before it.
func (c *Checker) Line(kind Kind, line []byte) (err error) {
	switch kind {
	case ExportLine:
		c.whole.Reset()
		c.Open = true
		c.Sessions = 0
		c.Messages = 0
	case SessionLine:
		c.one.Reset()
		c.MessagesOfOne = 0
	case MessageLine:
		c.Messages++
		c.MessagesOfOne++
	case EndLine:
		c.Sessions++
		err = c.end(line)
	case ManifestLine:
		err = c.manifest(line)
	}
	for _, h := range []hash.Hash{c.all, c.whole, c.one} {
		h.Write(line)
		h.Write([]byte{'\n'})
	}
	return err
}

func (c *Checker) end(line []byte) error {
	var stated struct{ End End }
	if err := json.Unmarshal(line, &stated); err != nil {
		return &Damage{"the end of the session cannot be read: " + err.Error()}
	}
	return differs("session", stated.End.Total, c.MessagesOfOne, c.one)
}

func (c *Checker) manifest(line []byte) error {
	c.Open = false
	var stated struct{ Manifest Manifest }
	if err := json.Unmarshal(line, &stated); err != nil {
		return &Damage{"the manifest cannot be read: " + err.Error()}
	}
	if stated.Manifest.Sessions != c.Sessions {
		return &Damage{fmt.Sprintf("the manifest counts %d sessions, there are %d", stated.Manifest.Sessions,
			c.Sessions)}
	}
	c.found.Sessions += stated.Manifest.Sessions
	c.found.Messages += stated.Manifest.Messages
	c.found.Bytes += stated.Manifest.Bytes
	c.found.SHA256 = stated.Manifest.SHA256
	return differs("archive", stated.Manifest.Total, c.Messages, c.whole)
}

func differs(what string, stated Total, messages int64, h hash.Hash) error {
	if stated.Messages != messages {
		return &Damage{fmt.Sprintf("the %s has %d messages by its end, but there are %d", what, stated.Messages,
			messages)}
	}
	if sum := hex.EncodeToString(h.Sum(nil)); stated.SHA256 != sum {
		return &Damage{fmt.Sprintf("the lines of the %s have the sha256 %s, its end says %.64s: they were changed",
			what, sum, stated.SHA256)}
	}
	return nil
}

// Cut reports whether an archive has begun whose manifest has not come.
func (c *Checker) Cut() bool { return c.Open }

// Sum returns the SHA-256 of all lines so far.
func (c *Checker) Sum() []byte { return c.all.Sum(nil) }

// MarshalBinary returns the state of the Checker.
func (c *Checker) MarshalBinary() ([]byte, error) {
	aside := c.counts
	for h, state := range map[hash.Hash]*[]byte{c.all: &aside.AllState, c.whole: &aside.Whole, c.one: &aside.OneState} {
		var err error
		if *state, err = h.(encoding.BinaryMarshaler).MarshalBinary(); err != nil {
			return nil, err
		}
	}
	return json.Marshal(aside)
}

// UnmarshalBinary restores a state that MarshalBinary returned.
func (c *Checker) UnmarshalBinary(data []byte) error {
	*c = *NewChecker()
	if err := json.Unmarshal(data, &c.counts); err != nil {
		return err
	}
	return errors.Join(restore(c.all, c.AllState), restore(c.whole, c.Whole), restore(c.one, c.OneState))
}

func restore(h hash.Hash, state []byte) error {
	return h.(encoding.BinaryUnmarshaler).UnmarshalBinary(state)
}

// Verify reads a file of archives to its end. It returns how many sessions and messages they have, or a *Damage.
func Verify(in io.Reader) (Manifest, error) {
	c, lines := NewChecker(), NewScanner(in, MaxLineBytes)
	for n := int64(1); ; n++ {
		line, err := lines.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return c.found, err
		}
		kind, _ := KindOf(line.Text)
		if n == 1 && kind != ExportLine || kind == Unknown {
			return c.found, &Damage{fmt.Sprintf("line %d is not a line of an export: %.80q", n,
				bytes.TrimSpace(line.Text))}
		}
		if err := c.Line(kind, line.Text); err != nil {
			return c.found, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if c.Cut() {
		return c.found, &Damage{"the export is cut off: its last line, the manifest, is missing"}
	}
	return c.found, nil
}
