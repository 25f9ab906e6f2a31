package importer

import (
	"encoding/json"
	"errors"
	"iter"
	"slices"

	"github.com/varve-dev/varve/internal/session"
)

// GeminiCLI is the sessions of Gemini CLI: one JSON document, or JSON lines that begin with its head.
const GeminiCLI Source = "gemini-cli"

var geminiCLI = source{
	name:   GeminiCLI,
	title:  "Gemini CLI's sessions",
	detect: func(s sample) bool { return s.object.has("projectHash") && s.object.has("sessionId") },
	read:   readGeminiCLI,
}

// readGeminiCLI writes a session as Gemini contents, around its strings, arguments and results as they stand. One
// record of the model becomes its content, and if it called tools another with their results.
//
//   - A session in JSON lines writes a record again when it has changed: the last one counts, where the first one
//     was.
//   - Going back in a session does not cut the log.
//   - Thoughts become parts that are marked as such; what the interface shows besides (info, warning, error) is
//     skipped.
func readGeminiCLI(f *File, id string, data []byte) error {
	var records iter.Seq[entry]
	if json.Valid(data) {
		messages := parseArray(parseObject(data)["messages"])
		if messages == nil {
			return errors.New(
				"the file is no Gemini CLI session: an object with an array \"messages\", or JSON lines, are needed",
			)
		}
		records = f.elements(messages)
	} else {
		records = slices.Values(f.geminiLines(data))
	}
	f.add(id, session.Gemini, f.convert(records, geminiMessages))
	return nil
}

// geminiLines finds the records of a session in lines.
func (f *File) geminiLines(data []byte) []entry {
	var records []entry
	at := map[string]int{}
	for e := range f.entries(data) {
		id, kind := e.text("id"), e.text("type")
		i, again := at[id]
		switch {
		case e.has("projectHash"):
			f.skip("head")
		case kind == "":
			f.skip("a record with " + memberList(e.object))
		case id != "" && again:
			f.skip(kind + " (written again)")
			e.line = records[i].line
			records[i] = e
		default:
			at[id] = len(records)
			records = append(records, e)
		}
	}
	return records
}

// geminiMessages writes a record: as two contents if the model called tools in it.
func geminiMessages(e entry) ([][]byte, error) {
	var parts, results [][]byte
	role, kind := "user", e.text("type")
	switch kind {
	case "":
		return nil, errNoType
	case "user":
	case "gemini", "model":
		role, parts = "model", thoughts(e.object["thoughts"])
	default:
		return nil, skipped(kind)
	}
	parts = append(parts, geminiParts(e.object["content"])...)
	parts = append(parts, parseArray(e.object["parts"])...)
	for _, raw := range parseArray(e.object["toolCalls"]) {
		call := parseObject(raw)
		parts = append(parts, geminiCall(call))
		results = append(results, geminiParts(call["result"])...)
	}
	var bodies [][]byte
	if len(parts) > 0 {
		bodies = append(bodies, geminiContent(role, parts))
	}
	if len(results) > 0 {
		bodies = append(bodies, geminiContent("user", results))
	}
	if bodies == nil {
		return nil, skipped(kind + " (empty)")
	}
	return bodies, nil
}

func geminiContent(role string, parts [][]byte) []byte {
	return fill(`{"role":"%","parts":%}`, []byte(role), list(parts))
}

// geminiParts reads what the SDK lets a caller write as content: a string, a part, or a list of either.
func geminiParts(raw []byte) [][]byte {
	switch {
	case string(raw) == `""`:
		return nil
	case isString(raw):
		return [][]byte{fill(`{"text":%}`, raw)}
	case parseObject(raw) != nil:
		return [][]byte{raw}
	}
	var parts [][]byte
	for _, element := range parseArray(raw) {
		parts = append(parts, geminiParts(element)...)
	}
	return parts
}

// thoughts returns the summaries that the model gave of what it thinks: a subject and a description each.
func thoughts(raw []byte) [][]byte {
	var parts [][]byte
	for _, raw := range parseArray(raw) {
		o := parseObject(raw)
		text := concat(o["subject"], o["description"])
		if o.text("subject") != "" && o.text("description") != "" {
			text = concat(o["subject"], quote("\n"), o["description"])
		}
		if string(text) != `""` {
			parts = append(parts, fill(`{"text":%,"thought":true}`, text))
		}
	}
	return parts
}

func geminiCall(o object) []byte {
	args := orEmpty(o["args"])
	if !isString(o["id"]) {
		return fill(`{"functionCall":{"name":%,"args":%}}`, inString(o["name"]), args)
	}
	return fill(`{"functionCall":{"id":%,"name":%,"args":%}}`, o["id"], inString(o["name"]), args)
}
