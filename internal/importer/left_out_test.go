package importer

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// hologram is a part that no program writes today, under every name that a type has.
const hologram = `{"type":"hologram","kind":"hologram","part_kind":"hologram","content_type":"hologram"}`

// notRead are the ends of lists of the samples that hold no parts of messages: what repeats the messages, the events of
// a stream, what stands beside a message in one, what is read by its names, and calls, which have no types.
var notRead = regexp.MustCompile(
	`replacement_history(\[0\]\.content)?$|outputBodyJson$|variables$|tool_calls$|toolCalls$|requests.*message\.parts$|^langchain \[\d+\]`)

// skippedRecords are lists in records that are skipped as a whole: another branch, a copy, what no model wrote.
var skippedRecords = set("claude-ai [0].chat_messages[2].content", "claude-code line 21 .message.content", "kimi line 3 .input",
	"librechat .messages[0].children[0].content", "opencode .messages[3].parts", "opencode .messages[4].parts", "pydantic-ai [4].parts")

// TestNothingIsLeftOutInSilence puts a part of an unknown type into each list of parts of every sample: it is in a
// message, or it is counted.
func TestNothingIsLeftOutInSilence(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "*.golden"))
	if err != nil {
		t.Fatal(err)
	}
	for _, golden := range files {
		t.Run(filepath.Base(golden), func(t *testing.T) {
			t.Parallel()
			read, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(strings.TrimSuffix(golden, ".golden"))
			if err != nil {
				t.Fatal(err)
			}
			source, _, _ := strings.Cut(string(read), "\n")
			before := accounted(t, data, Source(source))
			for path, planted := range plant(data) {
				if at := source + " " + path; notRead.MatchString(at) || skippedRecords[at] {
					continue
				}
				if after := accounted(t, planted, Source(source)); !after.shown && after.counted <= before.counted {
					t.Errorf("%s: a part at the end of %s is neither in a message nor counted", source, path)
				}
			}
		})
	}
}

// account is what became of the part.
type account struct {
	shown   bool
	counted int
}

func accounted(t *testing.T, data []byte, source Source) (a account) {
	t.Helper()
	f, err := Read(context.Background(), "s", data, source)
	if err != nil {
		return account{counted: 1 << 20}
	}
	for _, c := range f.Conversations {
		for _, m := range c.Messages {
			a.shown = a.shown || strings.Contains(string(m.Body), "hologram")
		}
	}
	for _, n := range f.Report.Skipped {
		a.counted += n
	}
	a.counted += len(f.Report.Rejected)
	return a
}

// plant returns a file with the part at the end of each list of objects with types in it, by paths.
func plant(data []byte) map[string][]byte {
	planted := map[string][]byte{}
	if json.Valid(data) {
		plantIn(data, "", func(path string, changed []byte) { planted[path] = changed })
		return planted
	}
	for n, line := range lines(data) {
		if !json.Valid(line) {
			continue
		}
		at := strings.Index(string(data), string(line))
		plantIn(line, fmt.Sprintf("line %d ", n), func(path string, changed []byte) {
			planted[path] = append(append(append([]byte{}, data[:at]...), changed...), data[at+len(line):]...)
		})
	}
	return planted
}

func plantIn(raw []byte, path string, yield func(path string, changed []byte)) {
	elements := parseArray(raw)
	typed := false
	for i, element := range elements {
		typed = typed || parseObject(element).first("type", "kind", "part_kind", "content_type") != nil
		plantIn(element, fmt.Sprintf("%s[%d]", path, i), func(path string, changed []byte) {
			all := append([][]byte{}, elements...)
			all[i] = changed
			yield(path, list(all))
		})
	}
	if typed {
		yield(path, list(append(append([][]byte{}, elements...), []byte(hologram))))
	}
	o := parseObject(raw)
	for name, value := range o {
		plantIn(value, path+"."+name, func(path string, changed []byte) {
			var members [][]byte
			for key, old := range o {
				if key == name {
					old = changed
				}
				members = append(members, fill("%:%", quote(key), old))
			}
			yield(path, inBraces(members))
		})
	}
}
