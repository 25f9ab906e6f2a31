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
//   - $rewindTo takes out the record that it names and all behind it; $set.messages has records, too.
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
	log := &geminiLog{file: f, at: map[string]int{}}
	for e := range f.linesOf(data) {
		switch {
		case log.ended:
			f.count(e, anotherBranch)
		case e.has("projectHash"):
			f.count(e, skipped("head"))
		case e.has("$rewindTo"):
			log.rewind(e)
		case parseArray(e.at("$set.messages")) != nil:
			for _, raw := range parseArray(e.at("$set.messages")) {
				log.add(entry{object: parseObject(raw), raw: raw, line: e.line})
			}
		default:
			log.add(e)
		}
	}
	return log.records
}

// geminiLog is a session in JSON lines being read.
type geminiLog struct {
	file    *File
	records []entry
	at      map[string]int // records by their ids
	ended   bool           // whether the branch that is read has ended
}

// add adds a record, in place of its earlier version.
func (l *geminiLog) add(e entry) {
	id, kind := e.text("id"), e.text("type")
	i, again := l.at[id]
	switch {
	case kind == "":
		l.file.count(e, skipped("a record with "+memberList(e.object)))
	case id != "" && again:
		l.file.count(e, skipped(kind+" (written again)"))
		e.line = l.records[i].line
		l.records[i] = e
	default:
		l.at[id] = len(l.records)
		l.records = append(l.records, e)
	}
}

// rewind takes out the records from the one that is named on, all if there is none of that name.
func (l *geminiLog) rewind(e entry) {
	l.file.count(e, skipped("a record with "+memberList(e.object)))
	if l.file.isWanted(e.line) {
		l.ended = true
		return
	}
	from := l.at[e.text("$rewindTo")]
	for _, r := range l.records[from:] {
		l.file.count(r, anotherBranch)
		delete(l.at, r.text("id"))
	}
	if n := len(l.records) - from; n > 0 {
		l.file.note(e.line, "%d messages before this were gone back behind: they are imported with branch %s", n,
			lineBranch(e.line))
	}
	l.records = l.records[:from]
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
