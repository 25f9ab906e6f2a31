package wire

import (
	"fmt"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire/provider"
)

// memberPlace is an object of the table of members, and the message around an object there.
type memberPlace struct {
	name          string
	of            *provider.Object
	before, after string // of the message, and the members that tell the object's kind
}

// memberPlaces returns all objects that messages of a format may have in them.
func memberPlaces(p memberPlace) (list []memberPlace) {
	inside := func(name string, of *provider.Object, before, after string) {
		list = append(list, memberPlaces(memberPlace{p.name + name, of, p.before + before, after + p.after})...)
	}
	for value, kind := range p.of.Kinds {
		inside("["+value+"]", kind, fmt.Sprintf("%q:%q,", p.of.By, value), "")
	}
	for prefix, kind := range p.of.Prefix {
		inside("["+prefix+"*]", kind, fmt.Sprintf("%q:%q,", p.of.By, prefix+"x"), "")
	}
	if p.of.Other != nil && len(p.of.Kinds) == 0 {
		inside("", p.of.Other, "", "")
	}
	if len(p.of.Members) > 0 {
		list = append(list, p)
	}
	for _, m := range p.of.Members {
		if m.In != nil {
			inside("."+m.Name, m.In, fmt.Sprintf("%q:[{", m.Name), "}]")
		}
	}
	return list
}

// TestEveryMemberOfTheTableIsInAView makes a message for every member of every object in the table, which a view has as
// it is, and the same with a member of another name, which it has not.
func TestEveryMemberOfTheTableIsInAView(t *testing.T) {
	t.Parallel()
	for _, f := range session.Formats() {
		places := memberPlaces(memberPlace{of: provider.Message(f), before: "{", after: "}"})
		members := 0
		for _, p := range places {
			for _, m := range p.of.Members {
				members++
				value := `["x"]`
				if m.Null {
					value = "null"
				}
				known, _ := p.message(m.Name, value)
				if m.System {
					known = strings.Replace(known, `"role":1`, `"role":"system"`, 1)
				}
				if got := expelled(f, known); got != known {
					t.Errorf("%s%s.%s: %s becomes %s", f, p.name, m.Name, known, got)
				}
				unknown, without := p.message(m.Name+"_", value)
				if got := expelled(f, unknown); got != without && p.of.Note == "" {
					t.Errorf("%s%s.%s: %s becomes %s", f, p.name, m.Name, unknown, got)
				}
				for _, refused := range []struct {
					is    bool
					value string
				}{{m.NotNull, "null"}, {m.NotVoid || m.Null, "[ ]"}} {
					body, without := p.message(m.Name, refused.value)
					if got := expelled(f, body); (got == without) != refused.is && p.of.Note == "" {
						t.Errorf("%s%s.%s: %s becomes %s", f, p.name, m.Name, body, got)
					}
				}
			}
		}
		if f != session.AISDK && members < 20 {
			t.Errorf("%s: only %d members were looked at", f, members)
		}
	}
}

// message returns a message with a member at the place, behind a member that the object may have, and one without it.
func (p *memberPlace) message(name, value string) (with, without string) {
	first := ""
	if before := p.before; strings.HasSuffix(before, "{") {
		first = fmt.Sprintf("%q:1,", p.of.Members[0].Name)
		if p.of.Members[0].Name == name {
			first = ""
		}
	}
	before := p.before + first
	without = strings.TrimSuffix(before, ",") + p.after
	return fmt.Sprintf("%s%q:%s%s", before, name, value, p.after), without
}

// expelled returns what a view has of the bytes of a message.
func expelled(f session.Format, body string) string {
	return string(repairerOf(f, nil).expel(Stored{Format: f, Body: []byte(body)}))
}
