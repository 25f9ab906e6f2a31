package policy

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/varve-dev/varve/internal/rawjson"
)

// aliases are the names that the systems which Varve unites have for fields that mean the same, by JSON pointer.
// Names that differ only in how their words are put together need no entry.
var aliases = map[string]string{
	"/compactionThreshold": "trigger", "/thresholdRatio": "trigger",
	"/protect/excludedTools": "tools", "/protect/preserveRecentCount": "last_messages",
	"/cap/maxResultTokens": "max_tokens", "/cap/maxMessageBytes": "max_bytes", "/cap/maxToolResultChars": "max_chars",
	"/cap/maxLineLength":           "max_line_chars",
	"/dedupe/toolIdentifierFields": "fields", "/dedupe/inputTrimBytes": "argument_bytes",
	"/dedupe/min_tool_output_tokens_to_compact": "min_tokens", "/dedupe/preserve_last_n_results": "keep_last",
	"/dedupe/redact_resource_identifiers": "redact",
	"/dedupe/allowed_tool_categories":     "allow_operations", "/dedupe/denied_tool_categories": "deny_operations",
	"/dedupe/tool_allowlist": "allow_tools", "/dedupe/tool_denylist": "deny_tools",
	"/trim/trimFloorRatio": "floor_ratio", "/trim/toolCategories": "categories",
	"/budget/contextBudgetTokens": "tokens",
	"/summarise/retainLastTurns":  "keep_turns", "/summarise/summaryPrompt": "prompt",
	"/summarise/summaryDirectives": "directives",
	"/wording/stub_template":       "stub",
}

// retired are the fields of earlier releases, with the values that documents have in them, none for any value. They
// change nothing.
var retired = map[string][]string{"/summarise/writer": {`"extract"`, "null"}, "/stale": nil, "/wording/stale": nil}

// isRetired reports whether a field of an earlier release may have a value.
func isRetired(pointer string, value []byte) bool {
	values, ok := retired[pointer]
	return ok && (values == nil || slices.Contains(values, string(value)))
}

// valueAliases are the systems' names for values that mean the same, by the type of the value.
var valueAliases = map[reflect.Type]map[string]string{
	reflect.TypeFor[Operation](): {"list_directory": string(ListDir)},
	reflect.TypeFor[string]():    profileAliases,
}

var profileAliases = map[string]string{"tool_compaction": "tool-compaction", "llm_proxy": "llm-proxy"}

// templateAliases are the systems' names for values of templates.
var templateAliases = strings.NewReplacer(
	"{size}", "{bytes}", "{toolName}", "{tool}", "{toolCallId}", "{call_id}", "{callId}", "{call_id}")

// fieldNamed returns the field of a section, "" for the policy itself, that a name means; "" if there is none.
func fieldNamed(section, name string, known []string) string {
	if slices.Contains(known, name) {
		return name
	}
	if ours := snake(name); slices.Contains(known, ours) {
		return ours
	}
	return aliases[section+"/"+name]
}

// snake returns a name in camel case or with hyphens as one with underscores.
func snake(name string) string {
	var words strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			words.WriteByte('_')
		}
		words.WriteRune(unicode.ToLower(r))
	}
	return strings.ReplaceAll(words.String(), "-", "_")
}

// canonical returns a layer's document with Varve's names for the fields that it names otherwise, so that layers can be
// merged member by member.
func canonical(document []byte) []byte {
	if start := rawjson.Start(document); len(document) == 0 || document[start] != '{' {
		return document
	}
	c := canon{document: document}
	c.rename(rawjson.Value(document), "", reflect.TypeFor[Policy]())
	return append(c.renamed, document[c.done:]...)
}

// canon copies a document from left to right and renames keys on the way.
type canon struct {
	document, renamed []byte
	done              int
}

func (c *canon) rename(at rawjson.Span, section string, of reflect.Type) {
	known := fieldsOf(of)
	for key, value := range rawjson.Members(c.document, at.Start) {
		written, _ := rawjson.Unquote(nil, key.Of(c.document))
		name := fieldNamed(section, string(written), known)
		if name == "" {
			continue
		}
		if name != string(written) {
			c.renamed = rawjson.Quote(append(c.renamed, c.document[c.done:key.Start]...), []byte(name))
			c.done = key.End
		}
		inner := of.Field(slices.Index(known, name)).Type
		if inner.Kind() == reflect.Struct && bytes.HasPrefix(value.Of(c.document), []byte("{")) {
			c.rename(value, section+"/"+name, inner)
		}
	}
}
