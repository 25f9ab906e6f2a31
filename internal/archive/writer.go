package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"strconv"
	"time"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// Writer writes an archive. Each call writes one line at once: put a buffer between it and a network.
type Writer struct {
	out        io.Writer
	line       bytes.Buffer
	whole, one hash.Hash // of the lines of the archive, and of its newest session
	manifest   Manifest
	end        End
}

// Begin writes the first line of an archive.
func Begin(out io.Writer) (*Writer, error) {
	w := &Writer{out: out, whole: sha256.New(), one: sha256.New()}
	return w, w.write(ExportLine, map[string]int{"version": Version})
}

// Tenant writes the tenant's layer of its policy.
func (w *Writer) Tenant(policy json.RawMessage) error {
	return w.write(TenantLine, map[string]json.RawMessage{"policy": policy})
}

// Session begins a session. End ends it.
func (w *Writer) Session(s session.Exported) error {
	s.CreatedAt = s.CreatedAt.UTC()
	w.end = End{Session: s.ID}
	w.one.Reset()
	return w.write(SessionLine, s)
}

// Message writes a message of the session.
func (w *Writer) Message(m *session.Message) error {
	w.end.Messages++
	w.end.Bytes += int64(len(m.Body))
	w.line.Reset()
	b := append(w.line.AvailableBuffer(), `{"message":{"session":`...)
	b = rawjson.Quote(b, []byte(w.end.Session))
	b = append(b, `,"seq":`...)
	b = strconv.AppendInt(b, m.Seq, 10)
	b = append(b, `,"format":"`+string(m.Format)+`"`...)
	if m.ClientID != "" {
		b = append(b, `,"client_id":`...)
		b = rawjson.Quote(b, []byte(m.ClientID))
	}
	b = appendTime(b, `,"created_at":"`, m.CreatedAt)
	if m.RemovedAt != nil {
		b = appendTime(b, `,"removed_at":"`, *m.RemovedAt)
		b = append(b, `,"removed_seq":`...)
		b = strconv.AppendInt(b, m.RemovedSeq, 10)
	}
	if m.SupersededBy > 0 {
		b = append(b, `,"superseded_by":`...)
		b = strconv.AppendInt(b, m.SupersededBy, 10)
	}
	b = append(b, `,"body":`...)
	if bytes.ContainsAny(m.Body, "\r\n") {
		b = rawjson.Quote(b, m.Body)
	} else {
		b = append(b, m.Body...)
	}
	w.line.Write(append(b, "}}\n"...))
	return w.flush()
}

func appendTime(b []byte, before string, t time.Time) []byte {
	return append(t.UTC().AppendFormat(append(b, before...), time.RFC3339Nano), '"')
}

// End ends the session, whose last seq is lastSeq. It lists the session's uploaded results and its pins.
func (w *Writer) End(lastSeq int64, uploads []Upload, pins []session.ArchivedPin) error {
	w.end.LastSeq = lastSeq
	w.end.Uploads = uploads
	w.end.Pins = pins
	w.end.SHA256 = hex.EncodeToString(w.one.Sum(nil))
	w.manifest.Sessions++
	w.manifest.Messages += w.end.Messages
	w.manifest.Bytes += w.end.Bytes
	return w.write(EndLine, w.end)
}

// Close writes the manifest.
func (w *Writer) Close() (Manifest, error) {
	w.manifest.SHA256 = hex.EncodeToString(w.whole.Sum(nil))
	return w.manifest, w.write(ManifestLine, w.manifest)
}

func (w *Writer) write(kind Kind, value any) error {
	w.line.Reset()
	w.line.WriteString(`{"` + string(kind) + `":`)
	encoder := json.NewEncoder(&w.line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("%s of an archive: %w", kind, err)
	}
	w.line.Truncate(w.line.Len() - len("\n"))
	w.line.WriteString("}\n")
	return w.flush()
}

func (w *Writer) flush() error {
	w.whole.Write(w.line.Bytes())
	w.one.Write(w.line.Bytes())
	_, err := w.out.Write(w.line.Bytes())
	return err
}
