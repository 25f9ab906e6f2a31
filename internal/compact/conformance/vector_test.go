package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	vectorsDir  = "testdata/vectors"
	originalDir = "../../../../shared/vectors" // of the repository's parent; not everybody has it
)

// vector is one recorded call of a system.
type vector struct {
	ID            string          `json:"id"`
	System        string          `json:"oracle"`
	Scope         string          `json:"scope"` // seed: Varve owes it; later, open: it does not
	Op            string          `json:"op"`
	LoneSurrogate bool            `json:"lone_surrogate"`
	Input         json.RawMessage `json:"input"`
	InputRawText  *string         `json:"input_raw_text"` // the input once more, in the original's order of keys
	Output        json.RawMessage `json:"output"`
}

// given returns the folder of vectors that the user of the test has named. A relative name is taken from here or, if no
// such folder exists, from the root of the repository.
func given(dir string) string {
	fromRoot := filepath.Join("../../..", dir)
	if _, err := os.Stat(dir); err != nil && !filepath.IsAbs(dir) {
		return fromRoot
	}
	return dir
}

// readVectors reads every vector below dir; files that hold none are passed over.
func readVectors(t *testing.T, dir string) []vector {
	t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".json" {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("no vectors in %s (%v)", dir, err)
	}
	var vectors []vector
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var v vector
		if err := json.Unmarshal(raw, &v); err != nil || v.ID == "" || v.Op == "" {
			t.Logf("%s holds no vector (%v)", file, err)
			continue
		}
		vectors = append(vectors, v)
	}
	return vectors
}

// decode reads the input into value. Numbers that go into an `any` stay json.Number, as they were written.
func (v vector) decode(value any) error {
	raw := []byte(v.Input)
	if v.InputRawText != nil {
		raw = []byte(*v.InputRawText)
	}
	return decodeJSON(raw, value)
}

func decodeJSON(raw []byte, value any) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	return decoder.Decode(value)
}

// failure is an error that a system is recorded to answer, by its class and text.
type failure struct {
	Name    string `json:"name"`
	Message string `json:"message"`
}

func (f *failure) Error() string { return f.Name + ": " + f.Message }

// beside returns the answer that has the error as one more member.
func (f *failure) beside(answer any) (any, error) {
	members := map[string]any{}
	raw, err := json.Marshal(answer)
	if err == nil {
		err = decodeJSON(raw, &members)
	}
	if members == nil {
		members = map[string]any{}
	}
	members["error"] = f
	return members, err
}

// plain returns value as comparable Go values: members in no order, numbers by their value.
func plain(value any) (any, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("marshal the answer: %w", err)
	}
	var decoded any
	if err := decodeJSON(raw, &decoded); err != nil {
		return nil, err
	}
	return mapValues(decoded, func(scalar any) any {
		if number, ok := scalar.(json.Number); ok {
			if value, ok := new(big.Rat).SetString(number.String()); ok {
				return "number " + value.RatString()
			}
		}
		return scalar
	}), nil
}

// withoutReplacements returns value without any U+FFFD, which replaces half a character, and without white
// space: a text that ends in one is trimmed in another place.
func withoutReplacements(value any) any {
	return mapValues(value, func(scalar any) any {
		if text, ok := scalar.(string); ok {
			return strings.Join(strings.Fields(strings.ReplaceAll(text, "\uFFFD", "")), "")
		}
		return scalar
	})
}

func mapValues(value any, change func(scalar any) any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, member := range value {
			value[key] = mapValues(member, change)
		}
		return value
	case []any:
		for i, element := range value {
			value[i] = mapValues(element, change)
		}
		return value
	}
	return change(value)
}
