package summary

import (
	"cmp"
	"encoding/json"
	"strings"
)

// todo is an element of a list of to-dos, with the names of its members in the tools of several agents.
type todo struct {
	Content, Step, Title, Text, Task, Description, Name string
	Status, State                                       string
	Completed, Done                                     bool
}

func (t todo) what() string {
	return cmp.Or(t.Content, t.Step, t.Title, t.Text, t.Task, t.Description, t.Name)
}

// status returns the status of an open to-do, "" for one that is done.
func (t todo) status() string {
	status := strings.ToLower(cmp.Or(t.Status, t.State))
	switch {
	case t.Completed, t.Done, status == "completed", status == "complete", status == "done", status == "cancelled":
		return ""
	}
	return cmp.Or(strings.ReplaceAll(status, "_", " "), "pending")
}

// list records the list of to-dos that a call of a planning tool writes; it replaces the earlier list.
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

// todosOf returns the list of to-dos in the arguments, nil for none.
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

// boxes records the check boxes of a text: an empty one is open until it is ticked.
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

// open records something that is still to do. Its text is its key.
func (d *draft) open(seq int64, kind, text string) {
	d.sections[open].put(text, at(seq, kind+": "+text))
}
