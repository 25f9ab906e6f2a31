package postgres

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/session"
)

// piece returns messages of the log behind the seq after as a view has them, named or not.
func piece(after int64, isNamed bool, bodies ...string) logged {
	l := logged{joined: []byte(strings.Join(bodies, ",")), after: after, through: after + int64(len(bodies))}
	var shapes []string
	for i, body := range bodies {
		shape := shapeOf(1, &session.NewMessage{Role: "user", Calls: []string{"a", "b"}}, []byte(body))
		if isNamed {
			shape = fmt.Sprintf("%d\x1c7\x1c%s", after+1+int64(i), shape)
		}
		shapes = append(shapes, shape)
	}
	l.shapes = []byte(strings.Join(shapes, "\x1e"))
	return l
}

func TestEveryMessageOfATailIsChecked(t *testing.T) {
	t.Parallel()
	bodies := []string{`{"a":1}`, `{"b":[1,2]}`, `{"c":"three, or four"}`}
	for _, isNamed := range []bool{false, true} {
		good := piece(10, isNamed, bodies...)
		if err := good.check(); err != nil {
			t.Fatal(err)
		}
		for i := range bodies {
			for _, other := range []string{"x", "", strings.Replace(bodies[i], ":", ";", 1), bodies[i] + " ", bodies[i] + `,{}`} {
				l := good
				damaged := append([]string(nil), bodies...)
				damaged[i] = other
				l.joined = []byte(strings.Join(damaged, ","))
				var found *session.DamagedError
				if err := l.check(); !errors.As(err, &found) || found.What != fmt.Sprintf("message %d", 11+i) {
					t.Errorf("message %d is %q, named %t: %v", 11+i, other, isNamed, err)
				}
			}
		}
	}
}

func TestAMessageThatIsNotThereIsNoticed(t *testing.T) {
	t.Parallel()
	l := piece(10, false, `{"a":1}`, `{"b":1}`)
	l.through++
	var found *session.DamagedError
	if err := l.check(); !errors.As(err, &found) || found.What != "message 11 to 13" {
		t.Error(err)
	}
	l = piece(10, true, `{"a":1}`, `{"b":1}`) // with the gaps of removals
	l.through = 20
	if err := l.check(); err != nil {
		t.Error(err)
	}
}

func TestShapesFromBeforeThereWereSumsAreReadable(t *testing.T) {
	t.Parallel()
	newer := piece(10, false, `{"a":1}`, `{"b":1}`)
	for _, old := range []string{"1", "1\x1f0\x1fuser\x1f\x1f\x1f", "1\x1f0\x1fassistant\x1fa\x1db\x1f\x1f"} {
		l := logged{joined: append([]byte(`{"old":1},`), newer.joined...), after: 9, through: 12}
		l.shapes = append([]byte(old+"\x1e"), newer.shapes...)
		if err := l.check(); err != nil {
			t.Errorf("%q: %v", old, err)
		}
		l.joined[len(l.joined)-2]++
		if err := l.check(); !errors.Is(err, session.ErrDamaged) {
			t.Errorf("%q: a newer message is damaged: %v", old, err)
		}
	}
}

func TestAShapeOfTheLogHasTheDigest(t *testing.T) {
	t.Parallel()
	body := `{"a":1}`
	l := logged{joined: []byte(body), through: 1, shapes: fmt.Appendf(nil, "1\x1c5\x1c1\x1f0\x1fuser\x1f\x1f\x1f%x.%x\x1f", len(body), sha256.Sum256([]byte(body)))}
	if err := l.check(); err != nil {
		t.Error(err)
	}
	l.joined = []byte(`{"a":2}`)
	if err := l.check(); !errors.Is(err, session.ErrDamaged) {
		t.Error(err)
	}
}

func BenchmarkCheckOfATail(b *testing.B) {
	var bodies []string
	for i := range 20 {
		bodies = append(bodies, fmt.Sprintf(`{"role":"user","content":"%d %s"}`, i, strings.Repeat("word ", 400)))
	}
	l := piece(10, false, bodies...)
	b.SetBytes(int64(len(l.joined)))
	b.ReportAllocs()
	for b.Loop() {
		if err := l.check(); err != nil {
			b.Fatal(err)
		}
	}
}
