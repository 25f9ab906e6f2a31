package resource

import (
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/rawjson"
)

// replacedArguments are the names of the arguments with the text that a call takes away.
var replacedArguments = argumentsOf("replaced")

// Written returns the text that a call writes into files, as it stands there afterwards: of a patch the lines that it
// adds or keeps, of an edit the new text.
func Written(arguments []byte) string {
	o, ok := parse(arguments)
	if !ok {
		return patched(string(arguments))
	}
	return strings.Join(o.written(), "\n")
}

// shortText is how many bytes a written text has at least.
const shortText = 40

// written returns the texts in the members of o and of the objects in its lists that are neither paths nor replaced.
func (o object) written() (texts []string) {
	for key, value := range rawjson.Members(o.data, o.start) {
		name, _ := o.textAt(key)
		if slices.Contains(replacedArguments, name) || slices.Contains(pathArguments, name) {
			continue
		}
		if text, ok := o.textAt(value); ok && len(text) >= shortText {
			if slices.Contains(patchArguments, name) {
				text = patched(text)
			}
			texts = append(texts, text)
		}
		for element := range o.elements(value) {
			if o.data[element.Start] == '{' {
				texts = append(texts, object{o.data, element.Start}.written()...)
			}
		}
	}
	return texts
}

// patched returns the lines that a patch adds or keeps, and any other text as it is.
func patched(patch string) string {
	if !strings.Contains(patch, "\n@@") && !strings.Contains(patch, beginPatch) {
		return patch
	}
	var kept strings.Builder
	for line := range strings.Lines(patch) {
		if line[0] == '+' && !strings.HasPrefix(line, "+++ ") || line[0] == ' ' {
			kept.WriteString(line[1:])
		}
	}
	return kept.String()
}
