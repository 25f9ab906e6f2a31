package resource

import (
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/rawjson"
)

// beginPatch is the first line of a patch as Codex' apply_patch takes it.
const beginPatch = "*** Begin Patch"

// The names of the arguments with paths and with patches, of the tools of all agents.
var (
	pathArguments  = argumentsOf("any_path")
	patchArguments = argumentsOf("patch")
)

// Paths returns the files that a call reads or writes, each once, as Clean returns them: from arguments with paths,
// lists of them, or lists of objects with one, and for writes from the headers of patches. A command has no paths,
// unless it is a patch and so a write. For more than maxPaths it returns none.
func Paths(operation string, arguments []byte) []string {
	var found []string
	o, ok := parse(arguments)
	switch {
	case operation == commandExecution:
		return nil
	case ok:
		found = o.paths(operation == fileWrite)
	case operation == fileWrite:
		found = patchPaths(string(arguments))
	}
	for i, name := range found {
		found[i] = Clean(name)
	}
	slices.Sort(found)
	found = slices.DeleteFunc(slices.Compact(found), func(name string) bool { return name == "" })
	if len(found) > maxPaths {
		return nil
	}
	return found
}

// maxPaths exceeds real calls; every path of a session is compared with others.
const maxPaths = 256

// paths returns the paths in the members of o and of the objects in its lists.
func (o object) paths(patches bool) []string {
	var found []string
	for key, value := range rawjson.Members(o.data, o.start) {
		name, _ := o.textAt(key)
		switch {
		case slices.Contains(pathArguments, name):
			found = append(found, o.texts(value)...)
		case patches && slices.Contains(patchArguments, name):
			for _, text := range o.texts(value) {
				found = append(found, patchPaths(text)...)
			}
		}
		for element := range o.elements(value) {
			if o.data[element.Start] == '{' {
				found = append(found, object{o.data, element.Start}.paths(false)...)
			}
		}
	}
	return found
}

// elements yields the elements of the value at span if it is a list.
func (o object) elements(span rawjson.Span) iter.Seq[rawjson.Span] {
	if o.data[span.Start] != '[' {
		return func(func(rawjson.Span) bool) {}
	}
	return rawjson.Elements(o.data, span.Start)
}

// texts returns the string at span, or the strings in the list there.
func (o object) texts(span rawjson.Span) []string {
	if text, ok := o.textAt(span); ok {
		return []string{text}
	}
	var texts []string
	for element := range o.elements(span) {
		if text, ok := o.textAt(element); ok {
			texts = append(texts, text)
		}
	}
	return texts
}

// patchPaths returns the files in the headers of a patch of apply_patch or of a unified diff, where the line with the
// new file follows the line with the old one.
func patchPaths(patch string) []string {
	var found []string
	old := ""
	for line := range strings.Lines(patch) {
		line = strings.TrimRight(line, "\r\n")
		for _, header := range []string{"*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "} {
			if name, ok := strings.CutPrefix(line, header); ok {
				found = append(found, name)
			}
		}
		if name, ok := strings.CutPrefix(line, "+++ "); ok && old != "" {
			found = append(found, diffPath(old, "a/"), diffPath(name, "b/"))
		}
		old, _ = strings.CutPrefix(line, "--- ")
		if old == line {
			old = ""
		}
	}
	return found
}

// diffPath returns the path in a header: git writes a letter before it, other programs a time after it.
func diffPath(name, side string) string {
	name, _, _ = strings.Cut(name, "\t")
	if name == "/dev/null" {
		return ""
	}
	return strings.TrimPrefix(name, side)
}

// Clean returns the normal form of a path: slashes, none doubled or at the end, no . and no .. that can be resolved, a
// small drive letter, no file: scheme. Case counts. Blanks and the working directory become empty.
func Clean(name string) string {
	name = normalisePath(strings.TrimPrefix(trim(name), "file://"))
	if name == "" {
		return ""
	}
	if name = path.Clean(name); name == "." {
		return ""
	}
	return name
}
