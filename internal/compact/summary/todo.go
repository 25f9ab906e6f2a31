package summary

import (
	"encoding/json"
	"strings"
)

// todo is an element of a list of to-dos, under the names that agents' tools have for its parts.
type todo struct {
	Content, Step, Title, Text, Task, Description, Name string
	Status, State                                       string
	Completed, Done                                     bool
}

func (t todo) what() string {
	for _, text := range []string{t.Content, t.Step, t.Title, t.Text, t.Task, t.Description, t.Name} {
		if text != "" {
			return text
		}
	}
	return ""
}

// status returns "" for what is done.
func (t todo) status() string {
	status := strings.ToLower(or(t.Status, t.State))
	switch {
	case t.Completed, t.Done, status == "completed", status == "complete", status == "done", status == "cancelled":
		return ""
	}
	return or(strings.ReplaceAll(status, "_", " "), "pending")
}

// list takes up the list of to-dos that a call of a planning tool writes. It replaces the earlier one.
func (d *draft) list(seq int64, p Part) {
	tool := strings.ToLower(p.Tool)
	if !strings.Contains(tool, "todo") && !strings.Contains(tool, "plan") {
		return
	}
	todos := todosOf(p.Text)
	if len(todos) == 0 {
		return
	}
	d.sections[open].dropAll("todo: ")
	for _, t := range todos {
		if status := t.status(); status != "" {
			d.open(seq, "todo", short(clean(t.what()))+" ("+status+")")
		}
	}
}

// todosOf finds the list among the arguments.
func todosOf(arguments string) []todo {
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(arguments), &object) != nil {
		return nil
	}
	for _, name := range []string{"todos", "plan", "items", "tasks", "steps", "entries"} {
		var todos []todo
		if json.Unmarshal(object[name], &todos) == nil && len(todos) > 0 && todos[0].what() != "" {
			return todos
		}
	}
	return nil
}

// boxes takes up the check boxes of a text: an empty one is open until it is ticked.
func (d *draft) boxes(seq int64, text string) {
	if !strings.Contains(text, "[") {
		return
	}
	for line := range strings.Lines(text) {
		line = bare(strings.TrimSpace(line))
		if what, ok := strings.CutPrefix(line, "[ ] "); ok {
			d.open(seq, "box", short(what))
		} else if ticked(line) {
			d.sections[open].drop(short(line[len("[x] "):]))
		}
	}
}

func ticked(line string) bool {
	return strings.HasPrefix(line, "[x] ") || strings.HasPrefix(line, "[X] ")
}

// open notes something that is still to do. Its text is its key.
func (d *draft) open(seq int64, kind, text string) {
	d.sections[open].put(text, at(seq, kind+": "+text))
}
