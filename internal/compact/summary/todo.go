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

// The beginnings of the entries of the plan.
const (
	todoMark = "todo: "
	boxMark  = "box: "
	doneMark = "done: "
)

// plans reports whether a call only writes the plan.
func (c call) plans() bool {
	return c.lists() || strings.HasPrefix(c.tool, taskCreate) || strings.HasPrefix(c.tool, taskUpdate)
}

// lists reports whether a call writes a whole list of to-dos.
func (c call) lists() bool {
	return strings.Contains(c.tool, "todo") || strings.Contains(c.tool, "plan")
}

// The tools of Claude Code that write one to-do.
const (
	taskCreate = "taskcreate"
	taskUpdate = "taskupdate"
)

// list records the list of to-dos that a call of a planning tool writes; it replaces the earlier list.
func (d *draft) list(seq int64, c call, arguments string) {
	if strings.HasPrefix(c.tool, taskUpdate) {
		d.update(seq, arguments)
	}
	if !c.lists() {
		return
	}
	todos := todosOf(arguments)
	if len(todos) == 0 {
		return
	}
	d.sections[plan].dropAll(todoMark)
	d.sections[plan].dropAll(doneMark)
	for _, t := range todos {
		what := short(clean(t.what()))
		if status := t.status(); status != "" {
			d.open(seq, todoMark, what, what+" ("+status+")")
		} else {
			d.done(seq, what)
		}
	}
}

// done adds to the entry of what is done of the plan.
func (d *draft) done(seq int64, what string) {
	const limit = 6
	earlierDone, _ := d.sections[plan].drop(doneMark)
	_, list, _ := strings.Cut(earlierDone.text, doneMark)
	var all []string
	if list != "" {
		all = strings.Split(list, editSep)
	}
	all = append(all, strings.ReplaceAll(what, editSep, ", "))
	list = strings.Join(all[max(0, len(all)-limit):], editSep)
	d.sections[plan].put(note{key: doneMark, seq: seq, text: doneMark + list})
}

// created records a to-do that has an id, from the result "Task #3 created successfully: measure".
func (d *draft) created(seq int64, c call, text string) {
	id, what, ok := strings.Cut(strings.TrimPrefix(text, "Task "), " created successfully: ")
	if ok && strings.HasPrefix(id, "#") && strings.HasPrefix(c.tool, taskCreate) {
		d.open(seq, todoMark, id, short(id+" "+what)+" (pending)")
	}
}

// update records the new status of such a to-do.
func (d *draft) update(seq int64, arguments string) {
	var change struct{ TaskID, Status string }
	if json.Unmarshal([]byte(arguments), &change) != nil || change.Status == "" {
		return
	}
	id := "#" + change.TaskID
	e, ok := d.sections[plan].drop(id)
	if !ok {
		return
	}
	what := strings.TrimPrefix(e.text[:max(strings.LastIndex(e.text, " ("), 0)], todoMark)
	if status := (todo{Status: change.Status}).status(); status != "" && change.Status != "deleted" {
		d.open(seq, todoMark, id, what+" ("+status+")")
	} else {
		d.done(seq, what)
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
			d.open(seq, boxMark, short(what), short(what))
		} else if ticked(line) {
			d.sections[plan].drop(short(line[len("[x] "):]))
		}
	}
}

func ticked(line string) bool {
	return strings.HasPrefix(line, "[x] ") || strings.HasPrefix(line, "[X] ")
}

// open records something of the plan that is still to do.
func (d *draft) open(seq int64, kind, key, text string) {
	d.sections[plan].put(note{key: key, seq: seq, text: kind + text})
}
