package importer

import (
	"encoding/json"
	"errors"
	"slices"
)

// A session is one JSON document, or JSON lines that begin with its head. It is written as Gemini contents, around its
// strings, arguments and results as they stand. One record of the model becomes its content, and if it called tools
// another with their results.
//
//   - A session in JSON lines writes a record again when it has changed: the last one counts, where the first one was.
//   - Going back in a session does not cut the log.
//   - Thoughts become parts that are marked as such; what the interface shows besides (info, warning, error) is
//     skipped.
var geminiCLI = source{
	name:   GeminiCLI,
	title:  "Gemini CLI's sessions",
	detect: marked("projectHash sessionId"),
	into:   Gemini,
	record: byType(map[string]record{"user": geminiMessage, "gemini": geminiMessage, "model": geminiMessage}),
	read:   readGeminiCLI,
}

// readGeminiCLI finds the records of a session and reads them.
func readGeminiCLI(f *File, id string, data []byte) error {
	if !json.Valid(data) {
		d := f.newDraft(nil)
		d.records(slices.Values(f.geminiLines(data)))
		d.finish(id)
		return nil
	}
	messages := parseArray(parseObject(data)["messages"])
	if messages == nil {
		return errors.New(
			"the file is no Gemini CLI session: an object with an array \"messages\", or JSON lines, are needed",
		)
	}
	f.readRun(id, nil, messages)
	return nil
}

// geminiLines returns the records of a session in JSON lines, each in its last version.
func (f *File) geminiLines(data []byte) []entry {
	var records []entry
	at := map[string]int{}
	for e := range f.linesOf(data) {
		id, kind := e.text("id"), e.text("type")
		i, again := at[id]
		switch {
		case e.has("projectHash"):
			f.count(e, skipped("head"))
		case kind == "":
			f.count(e, skipped("a record with "+memberList(e.object)))
		case id != "" && again:
			f.count(e, skipped(kind+" (written again)"))
			e.line = records[i].line
			records[i] = e
		default:
			at[id] = len(records)
			records = append(records, e)
		}
	}
	return records
}

// geminiMessage adds a record: as two contents if the model called tools in it.
func geminiMessage(d *draft, e entry) error {
	var parts, results [][]byte
	role := "user"
	if e.text("type") != role {
		role, parts = "model", thoughts(e.object["thoughts"])
	}
	parts = append(parts, geminiParts(e.object["content"])...)
	parts = append(parts, parseArray(e.object["parts"])...)
	for call := range objects(e.object["toolCalls"]) {
		parts = append(parts, geminiCall(call))
		results = append(results, geminiParts(call["result"])...)
	}
	if len(parts)+len(results) == 0 {
		return skipped(e.text("type") + " (empty)")
	}
	addParts(d, role, parts)
	addParts(d, "user", results)
	return nil
}

// addParts adds a content unless it has no parts.
func addParts(d *draft, role string, parts [][]byte) {
	if len(parts) > 0 {
		d.add(fill(`{"role":%,"parts":%}`, quote(role), list(parts)))
	}
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
	for o := range objects(raw) {
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
	call := fill(`"name":%,"args":%`, inString(o["name"]), or(o["args"], "{}"))
	if isString(o["id"]) {
		call = fill(`"id":%,%`, o["id"], call)
	}
	return fill(`{"functionCall":{%}}`, call)
}
