package frozen_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/varve-dev/varve/internal/tier/frozen"
	"github.com/varve-dev/varve/internal/zframe"
)

var (
	of      = frozen.Table{Name: "t", Columns: []string{"plain", "frame", "better", "blocks"}}
	codings = map[string]frozen.Coding{"frame": frozen.Frame, "better": frozen.Frame, "blocks": frozen.Blocks}
)

func frame(level zstd.EncoderLevel, text []byte) []byte {
	encoder, _ := zstd.NewWriter(nil, zstd.WithEncoderLevel(level), zstd.WithEncoderConcurrency(1))
	return encoder.EncodeAll(text, nil)
}

func hexOf(stored []byte) *string { return new(`\x` + hex.EncodeToString(stored)) }

// text returns bytes that compress little, and are like nothing else.
func text(seed uint64, n int) []byte {
	random := rand.New(rand.NewPCG(seed, 1))
	var b []byte
	for len(b) < n {
		b = fmt.Appendf(b, "%x ", random.Uint32())
	}
	return b[:n]
}

func written(t testing.TB, codings map[string]frozen.Coding, rows ...[]*string) []byte {
	t.Helper()
	w, err := frozen.NewWriter()
	for _, row := range rows {
		if err == nil {
			err = w.Add(of, row, codings)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	part, err := w.End()
	if err != nil || part.Rows != int64(len(rows)) || part.Digest != sha256.Sum256(part.Body) {
		t.Fatalf("%d rows, %v", part.Rows, err)
	}
	return part.Body
}

// read returns the rows of a part as they come back, and how many values are not what they were.
func read(part []byte) (rows [][]*string, others int, err error) {
	err = frozen.Read(part, func(table *frozen.Table, row frozen.Row) error {
		if !cmp.Equal(*table, of) {
			return fmt.Errorf("the table is %+v", table)
		}
		var texts []*string
		for i := range row {
			text, same := row[i].Text()
			texts = append(texts, text)
			if !same {
				others++
			}
		}
		rows = append(rows, texts)
		return nil
	})
	return rows, others, err
}

// rowsOf returns rows of whatever a value may be.
func rowsOf() [][]*string {
	like := text(1, 300_000)
	large := bytes.Repeat([]byte("x"), 9<<20) // more than is opened
	best, fast := frame(zstd.SpeedBestCompression, like), frame(zstd.SpeedFastest, like)
	return [][]*string{
		{hexOf(like), hexOf(frame(zstd.SpeedDefault, like)), hexOf(frame(zstd.SpeedBetterCompression, like)), hexOf(zframe.Compress(like))},
		{nil, nil, nil, nil},
		{new(""), new(""), new(`\x`), new(`\x`)},
		{new(`\x0`), new(`\xAB`), new("\x1b\n\"é"), new(`\x00`)},
		{hexOf(best), hexOf(best), hexOf(fast), hexOf(best)}, // by other encoders than the columns have
		{hexOf(large), hexOf(frame(zstd.SpeedDefault, large)), hexOf(frame(zstd.SpeedBetterCompression, large)), hexOf(zframe.Compress(large))},
		{hexOf([]byte("no frame")), hexOf(fast[:len(fast)/2]), hexOf(like), hexOf([]byte{1, 0, 0})},
	}
}

func TestRowsComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	rows := rowsOf()
	found, others, err := read(written(t, codings, rows...))
	if err != nil || others > 0 {
		t.Fatalf("%d others, %v", others, err)
	}
	if !cmp.Equal(found, rows) {
		for i := range rows {
			for j := range rows[i] {
				if i >= len(found) || !cmp.Equal(found[i][j], rows[i][j]) {
					t.Errorf("row %d, column %d is another", i, j)
				}
			}
		}
	}
}

// TestValuesAreCompressedTogether has what is in a row four times, each time compressed in another way.
func TestValuesAreCompressedTogether(t *testing.T) {
	t.Parallel()
	row := rowsOf()[0]
	closed, opened := len(written(t, nil, row)), len(written(t, codings, row))
	one := len(frame(zstd.SpeedBetterCompression, text(1, 300_000)))
	if closed < 2*one || opened > one+one/20 {
		t.Errorf("one value has %d bytes, four %d; closed %d", one, opened, closed)
	}
}

// TestAnotherEncoderIsTold changes what a part says of the bytes that values were decompressed from, as if the program
// that wrote it had had another encoder.
func TestAnotherEncoderIsTold(t *testing.T) {
	t.Parallel()
	rows := rowsOf()[:1]
	decoder, _ := zstd.NewReader(nil)
	plain, err := decoder.DecodeAll(written(t, codings, rows...), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i < len(of.Columns); i++ {
		stored, _ := hex.DecodeString((*rows[0][i])[2:])
		sum := sha256.Sum256(stored)
		if bytes.Count(plain, sum[:8]) != 1 {
			t.Fatalf("%s is not decompressed", of.Columns[i])
		}
		changed := bytes.Replace(plain, sum[:8], []byte("another!"), 1)
		found, others, err := read(frame(zstd.SpeedDefault, changed))
		if err != nil || others != 1 || !cmp.Equal(found, rows) {
			t.Errorf("%s: %d others, %v", of.Columns[i], others, err)
		}
	}
}

// TestWhatIsNoPartIsRefused also says how a program of before refuses a part of now: by the first line.
func TestWhatIsNoPartIsRefused(t *testing.T) {
	t.Parallel()
	decoder, _ := zstd.NewReader(nil)
	plain, err := decoder.DecodeAll(written(t, codings, []*string{new("a"), nil, nil, nil}), nil)
	if err != nil || !bytes.HasPrefix(plain, []byte("{\"version\":1}\n")) {
		t.Fatalf("%.40q, %v", plain, err)
	}
	for cut := range plain {
		if _, _, err := read(frame(zstd.SpeedDefault, plain[:cut])); cut > 14 && cut < 75 && !errors.Is(err, frozen.ErrFormat) {
			t.Errorf("cut at %d: %v", cut, err)
		}
	}
	for _, text := range []string{
		"", `{"version":2}` + "\n", `{"version":0}` + "\n", "{\"version\":1}", "{\"version\":1}\nx", "{\"version\":1}\nr", "{\"version\":1}\nt\x02{}",
		"{\"version\":1}\nt\xff\xff\xff\xff\xff\xff\xff\xff\x01{}",
	} {
		if _, _, err := read(frame(zstd.SpeedDefault, []byte(text))); !errors.Is(err, frozen.ErrFormat) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestTheEncodersAreThoseOfArchives fails when the zstd library, or how it is asked, makes other bytes than those that
// archives were made of. Nothing is lost then: what comes back is another compression of the same bytes, and gets new
// digests. Who sees it red writes the new digests here, and says in CHANGELOG.md that views of sessions that were cold
// come as other bytes to readers that accept zstd.
func TestTheEncodersAreThoseOfArchives(t *testing.T) {
	t.Parallel()
	like := text(1, 300_000)
	for name, stored := range map[string][]byte{
		"FRAME": frame(zstd.SpeedDefault, like), "BETTER": frame(zstd.SpeedBetterCompression, like), "BLOCKS": zframe.Compress(like),
	} {
		if sum := sha256.Sum256(stored); hex.EncodeToString(sum[:8]) != digests[name] {
			t.Errorf("%s makes %x", name, sum[:8])
		}
	}
}

var digests = map[string]string{"FRAME": "dca717adc8e4c1a7", "BETTER": "81e03dfb5e191566", "BLOCKS": "484b09f4a0cccabc"}
