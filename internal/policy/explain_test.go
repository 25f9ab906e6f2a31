package policy

import (
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestEveryFieldOfAProfileIsExplained: what a system's profile states has a line, each number that acts and each text
// one of its own; a line is of a field that there is, and names classes of the page.
func TestEveryFieldOfAProfileIsExplained(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	if len(sources) != len(Profiles()) { // "*" in place of the default
		t.Errorf("%d documents", len(sources))
	}
	for _, profile := range Profiles()[1:] {
		used := map[string]bool{}
		for pointer, leaf := range eachField(reflect.ValueOf(profileOrDefault(profile)), "") {
			line, own := nearest(sources["*"].Lines, pointer), nearest(sources[profile].Lines, pointer)
			if own != nil {
				line = own
			}
			if line == nil {
				if pointer != "/profile" && states(t, profile, pointer) {
					t.Errorf("%s: nothing is said of %s", profile, pointer)
				}
				continue
			}
			for _, field := range line.Fields {
				used[field] = true
			}
			acts := leaf.CanInt() && !leaf.IsZero() || leaf.CanFloat() && !leaf.IsZero() || strings.HasPrefix(pointer, "/wording/")
			if acts && states(t, profile, pointer) && !slices.Contains(line.Fields, pointer) {
				t.Errorf("%s: %s has no line of its own", profile, pointer)
			}
		}
		for _, line := range sources[profile].Lines {
			for _, field := range line.Fields {
				if !used[field] {
					t.Errorf("%s: no field is below %s, or all have lines nearer to them", profile, field)
				}
			}
			if line.Section == "" && !strings.HasPrefix(line.Says, "Varve's") {
				t.Errorf("%s: %q is of no section", profile, line.Says)
			}
			for _, class := range line.Classes {
				row := regexp.MustCompile(`(?m)^\| ` + class + ` \| ([a-z, -]+) \|`).FindSubmatch(page)
				if row == nil || !slices.Contains(strings.Split(string(row[1]), ", "), profile) {
					t.Errorf("%s: the page has no class %q of it", profile, class)
				}
			}
		}
	}
}

// states reports whether the document of a profile has a field.
func states(t *testing.T, profile, pointer string) bool {
	t.Helper()
	text, err := documents.ReadFile("profiles/" + profile + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var at any
	if err := json.Unmarshal(text, &at); err != nil {
		t.Fatal(err)
	}
	for name := range strings.SplitSeq(pointer[1:], "/") {
		section, _ := at.(map[string]any)
		var ok bool
		if at, ok = section[name]; !ok {
			return false
		}
	}
	return true
}

// TestWhatExplainsAProfile asks for what the commands and the API show.
func TestWhatExplainsAProfile(t *testing.T) {
	t.Parallel()
	document, list := Explain("codelia")
	i := slices.IndexFunc(list, func(e Explained) bool { return e.Field == "cap.max_bytes" })
	if want := (Explained{"cap.max_bytes", json.RawMessage("51200"), "1.3 Configuration", "`maxMessageBytes` 50 × 1,024.",
		[]string{"limit", "untouched"}}); !strings.Contains(document, "codelia") || i < 0 || !reflect.DeepEqual(list[i], want) {
		t.Errorf("%q: %+v", document, list)
	}
	if document, list := Explain("default"); document != "" || len(list) > 0 {
		t.Errorf("the default follows %q", document)
	}
}
