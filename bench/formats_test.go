package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/compact/compacttest"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/wiretest"
)

// A conversation of megabyte is measured where none of longBytes was recorded.
const (
	longBytes = 500_000
	megabyte  = 1_000_000
)

// BenchmarkFormats compares how messages are accepted, read and written with encoding/json doing the same into the
// structs of an ordinary client, how views are found valid by their shapes with encoding/json reading them, and the
// rendering of whole views with encoding/json reading and writing the same messages.
func BenchmarkFormats(b *testing.B) {
	recorded, _, err := compacttest.Recorded(dataDir())
	if err != nil {
		b.Fatal(err)
	}
	for _, f := range session.Formats() {
		views, what := viewsOf(f, recorded)
		s, err := newSpoken(f, views)
		if err != nil {
			b.Fatal(err)
		}
		name := fmt.Sprintf("%s/%s/", f, what)
		beside(b, name+"accepted", func() work { return work{s.size, s.accept, s.structs.read} })
		beside(b, name+"found valid", func() work { return work{s.size, s.validate(), s.structs.read} })
		beside(b, name+"decode", func() work { return work{s.size, s.decode, s.structs.read} })
		beside(b, name+"encode", func() work { return work{s.size, s.encode, s.structs.write} })
		for _, target := range session.Formats() {
			beside(
				b, name+"rendered in "+string(target),
				func() work { return work{s.size, s.render(target), s.structs.pass} },
			)
		}
	}
}

// viewsOf returns the long ones of the recorded conversations of a format, or one that is made up where there are none.
func viewsOf(f session.Format, recorded []compacttest.Conversation) (views [][]wire.Stored, what string) {
	for i := range recorded {
		if c := &recorded[i]; c.Format == f && sizeOf(c.Messages) >= longBytes {
			views = append(views, storedOf(f, c.Messages))
		}
	}
	if len(views) > 0 {
		return views, fmt.Sprintf("%d recorded", len(views))
	}
	return [][]wire.Stored{storedOf(f, madeUp(f, megabyte))}, "made up"
}

// madeUp returns a conversation of about size bytes.
func madeUp(f session.Format, size int) [][]byte {
	const averageMessage = 100 // bytes
	bodies := compacttest.Session(rand.New(rand.NewPCG(1, 1)), f, compacttest.Options{Messages: size / averageMessage})
	n := 0
	for total := 0; n < len(bodies) && total < size; n++ {
		total += len(bodies[n])
	}
	return bodies[:n]
}

func sizeOf(bodies [][]byte) (size int) {
	for _, body := range bodies {
		size += len(body)
	}
	return size
}

func storedOf(f session.Format, bodies [][]byte) []wire.Stored {
	view := make([]wire.Stored, len(bodies))
	for i, body := range bodies {
		view[i] = wire.Stored{Format: f, Body: body, Seq: int64(i + 1), Flags: wire.ShapeOfBody(f, body).Flags}
	}
	return view
}

// spoken are views of one format, and what they say in the two models that are compared.
type spoken struct {
	format   session.Format
	views    [][]wire.Stored
	size     int
	neutrals [][]wire.Message // of each view
	structs  structs
}

func newSpoken(f session.Format, views [][]wire.Stored) (*spoken, error) {
	s := &spoken{format: f, views: views, neutrals: make([][]wire.Message, len(views))}
	var bodies [][]byte
	for i, view := range views {
		for j := range view {
			bodies = append(bodies, view[j].Body)
			for _, n := range wire.Decode(f, view[j].Body) {
				n.Origin = j
				s.neutrals[i] = append(s.neutrals[i], anew(n))
			}
		}
	}
	s.size = sizeOf(bodies)
	var err error
	s.structs, err = clients[f](bodies)
	return s, err
}

// anew makes a message one that has to be written again: its texts, calls and results. Thoughts, images and what
// Varve has no words for stand as they are in every view of their own format.
func anew(n wire.Message) wire.Message {
	n.Edited = true
	editPieces(n.Blocks)
	return n
}

func editPieces(pieces []wire.Block) {
	for i := range pieces {
		p := &pieces[i]
		p.Edited = p.Kind == wire.Text || p.Kind == wire.Call || p.Kind == wire.Result
		editPieces(p.Content)
	}
}

// accept does what an append does with the messages.
func (s *spoken) accept() error {
	for _, view := range s.views {
		for i := range view {
			facts, err := wire.Accept(s.format, view[i].Body)
			if err != nil {
				return err
			}
			wire.ShapeOf(s.format, &facts)
		}
	}
	return nil
}

// validate returns what a read does to find out whether the views need no repairs: it knows the shapes of the messages.
func (s *spoken) validate() func() error {
	shapes := make([][]wire.MessageShape, len(s.views))
	for i, view := range s.views {
		for j := range view {
			shapes[i] = append(shapes[i], wire.ShapeOfBody(s.format, view[j].Body))
		}
	}
	return func() error {
		for _, view := range shapes {
			v := wire.NewFastValidator(s.format)
			for i := range view {
				v.Add(&view[i])
			}
			v.Valid("")
		}
		return nil
	}
}

func (s *spoken) decode() error {
	for _, view := range s.views {
		for i := range view {
			wire.Decode(s.format, view[i].Body)
		}
	}
	return nil
}

func (s *spoken) encode() error {
	for _, list := range s.neutrals {
		wire.Encode(s.format, list)
	}
	return nil
}

func (s *spoken) render(target session.Format) func() error {
	return func() error {
		for _, view := range s.views {
			wiretest.Render(target, view, wire.Options{})
		}
		return nil
	}
}

func TestTheStructsLoseNothingOfAConversation(t *testing.T) {
	t.Parallel()
	t.Run("openai-chat", testStruct[chatStruct](session.OpenAIChat))
	t.Run("anthropic", testStruct[anthropicStruct](session.Anthropic))
	t.Run("openai-responses", testStruct[itemStruct](session.OpenAIResponses))
	t.Run("gemini", testStruct[contentStruct](session.Gemini))
	t.Run("ai-sdk", testStruct[uiStruct](session.AISDK))
}

func testStruct[T any](f session.Format) func(*testing.T) {
	return func(t *testing.T) {
		t.Parallel()
		for _, body := range madeUp(f, 100_000) {
			var m T
			if err := json.Unmarshal(body, &m); err != nil {
				t.Fatal(err)
			}
			again, err := json.Marshal(&m)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(decoded(t, body), decoded(t, again)); diff != "" {
				t.Fatal(diff)
			}
		}
	}
}

func decoded(t *testing.T, text []byte) (value any) {
	t.Helper()
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

func TestWhatIsEncodedIsAWholeConversation(t *testing.T) {
	t.Parallel()
	for _, f := range session.Formats() {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			bodies := madeUp(f, 100_000)
			s, err := newSpoken(f, [][]wire.Stored{storedOf(f, bodies)})
			if err != nil {
				t.Fatal(err)
			}
			written := wire.Encode(f, s.neutrals[0])
			if len(written) != len(bodies) {
				t.Errorf("%d messages of %d", len(written), len(bodies))
			}
			if share := float64(sizeOf(written)) / float64(s.size); share < 0.95 || share > 1.1 {
				t.Errorf("%d bytes of %d", sizeOf(written), s.size)
			}
			if diff := cmp.Diff(shownTexts(f, bodies), shownTexts(f, written)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// shownTexts returns the texts of all messages, a line each.
func shownTexts(f session.Format, bodies [][]byte) string {
	var lines strings.Builder
	var add func(pieces []wire.Block)
	add = func(pieces []wire.Block) {
		for _, p := range pieces {
			fmt.Fprintf(&lines, "%s%s\n", p.Text, p.Value)
			add(p.Content)
		}
	}
	for _, body := range bodies {
		for _, n := range wire.Decode(f, body) {
			add(n.Blocks)
		}
	}
	return lines.String()
}

func TestLongRecordedConversationsArePreferredToMadeUpOnes(t *testing.T) {
	t.Parallel()
	long := compacttest.Conversation{Format: session.Anthropic, Messages: madeUp(session.Anthropic, 600_000)}
	short := compacttest.Conversation{Format: session.Gemini, Messages: madeUp(session.Gemini, 10_000)}
	recorded := []compacttest.Conversation{long, short, long}
	for f, want := range map[session.Format]string{
		session.Anthropic: "2 recorded", session.Gemini: "made up", session.AISDK: "made up",
	} {
		views, what := viewsOf(f, recorded)
		if what != want {
			t.Errorf("%s: %s, not %s", f, what, want)
		}
		for _, view := range views {
			if len(view) == 0 || view[0].Format != f {
				t.Errorf("%s: a view of %d messages of another format", f, len(view))
			}
		}
	}
}
