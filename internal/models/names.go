package models

import (
	"iter"
	"regexp"
	"slices"
	"strings"
)

// maxName is the length of a name that is looked at. Amazon's ARNs, the longest, have 2,048 bytes.
const maxName = 2048

// regions stand before the names of Bedrock's inference profiles
// (https://docs.aws.amazon.com/bedrock/latest/userguide/inference-profiles-support.html).
var regions = []string{"us", "eu", "apac", "jp", "au", "ca", "in", "sa", "me", "af", "us-gov", "global"}

// platforms begin names like databricks-claude-sonnet-4-5.
var platforms = []string{"databricks", "vertex", "bedrock", "azure"}

// suffixes of names that say how a model is offered and not which it is, each removed from the end:
//
//   - what is behind a colon: OpenRouter's variants (:free), Bedrock's revisions (-v1:0)
//   - versions behind @ (Vertex), dates (-20250929, -2024-08-06), Bedrock's -v1, Gemini's -001 and the dates of
//     previews (-preview-05-06)
//   - Claude Code's [1m], a larger window of the same model
//   - effort, speed and price (-thinking, -thinking-32k, -high, -fast, :batch), and the formats of open weights (-fp8)
var suffixes = regexp.MustCompile(`(:[^:]*|@[^@]*|\[1m\]|-1m|-thinking-\d+k|-\d{8}|-\d{4}-\d{2}-\d{2}|-v\d+|-00\d|` +
	`-(preview|exp)-\d{2}-\d{2,4}|-(latest|preview|exp|beta|default|free|batch|maas|fast|thinking|think|` +
	`nothinking|reasoning|non-reasoning|minimal|low|medium|high|xhigh|instruct|it|fp8|bf16|nvfp4|awq|gguf|4bit|8bit))$`)

// revisions are those suffixes of which a name is freed even if its model is not known. What has a v3 or later is
// another model, deepseek-v4, and no revision of Bedrock's.
var revisions = regexp.MustCompile(`(:[^:]*|@[^@]*|\[1m\]|-\d{8}|-\d{4}-\d{2}-\d{2}|-v[12])$`)

// parted are versions as Cerebras and Vercel spell them: qwen-3.8-27b.
var parted = regexp.MustCompile(`^qwen-(\d)`)

// pointed are versions as Fireworks spells them: qwen2p5-72b-instruct, glm-4p7.
var pointed = regexp.MustCompile(`(\d)p(\d)`)

// key returns a name in the form in which the registry compares names: claude-sonnet-4.5, claude-4-5-sonnet and
// Claude_Sonnet_4_5 are the same.
func key(name string) string {
	name = pointed.ReplaceAllString(parted.ReplaceAllString(strings.ToLower(name), "qwen$1"), "$1-$2")
	name = strings.Map(func(c rune) rune {
		switch c {
		case '.', '_', ' ':
			return '-'
		}
		return c
	}, name)
	if rest, ok := strings.CutPrefix(name, "claude-"); ok {
		return "claude-" + classFirst(rest)
	}
	return name
}

// classes of Claude stood behind the version until version 4, and do so still at several platforms.
var classes = []string{"opus", "sonnet", "haiku", "fable", "mythos", "instant"}

func classFirst(rest string) string {
	fields := strings.Split(rest, "-")
	i := slices.IndexFunc(fields, func(f string) bool { return slices.Contains(classes, f) })
	if i <= 0 {
		return rest
	}
	return strings.Join(slices.Concat(fields[i:i+1], fields[:i], fields[i+1:]), "-")
}

// spellings yields what a name may be in the registry, as it is first, and then with ever less of what platforms put
// around it:
//
//	anthropic/claude-sonnet-4.5:beta, us.anthropic.claude-opus-4-6-v1, claude-sonnet-4-5@20250929,
//	arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-3-haiku-20240307-v1:0,
//	projects/p/locations/global/publishers/google/models/gemini-3.8-flash, openai:gpt-6-sol, azure/gpt-5.6
func spellings(name string, vendors map[string]bool) iter.Seq[string] {
	return func(yield func(string) bool) {
		name = strings.ToLower(strings.TrimSpace(name))
		if len(name) > maxName || !yield(name) {
			return
		}
		vendor, id := bare(name, vendors)
		_, served, _ := strings.Cut(id, ":") // google-vertex:claude-opus-5-5 in a registry of the AI SDK
		for _, id := range []string{id, served} {
			for id != "" {
				if !yield(id) || !yield(withoutPlatform(id, vendors)) || !yield(vendor+"-"+id) { // deepseek.v3.2
					return
				}
				end := suffixes.FindStringIndex(id)
				if end == nil {
					break
				}
				id = id[:end[0]]
			}
		}
	}
}

// bare returns a name in lower case without the path, provider and region before it, and the last of these.
func bare(name string, vendors map[string]bool) (vendor, id string) {
	id = name[strings.LastIndexByte(name, '/')+1:]
	if tuned, ok := strings.CutPrefix(id, "ft:"); ok { // ft:gpt-4o-2024-08-06:acme::id
		id, _, _ = strings.Cut(tuned, ":")
	}
	for {
		i := strings.IndexAny(id, ".:")
		if i < 0 || !vendors[id[:i]] {
			return vendor, id
		}
		vendor, id = id[:i], id[i+1:]
	}
}

// withoutPlatform returns an id without the name of a platform or of a provider and the dashes behind it.
func withoutPlatform(id string, vendors map[string]bool) string {
	before, after, found := strings.Cut(id, "-")
	if found && (vendors[before] || slices.Contains(platforms, before)) {
		return strings.TrimLeft(after, "-")
	}
	return id
}

// plainName returns the key of a model that is not known.
func plainName(name string, vendors map[string]bool) string {
	if len(name) > maxName {
		return name
	}
	_, id := bare(strings.ToLower(strings.TrimSpace(name)), vendors)
	for {
		end := revisions.FindStringIndex(id)
		if end == nil || end[0] == 0 {
			return key(id)
		}
		id = id[:end[0]]
	}
}

// withSuffix returns a model with the window that its name asks for: that of [1m] has a million tokens
// (https://code.claude.com/docs/en/model-config).
func withSuffix(m Model, name string) Model {
	name = strings.ToLower(strings.TrimSpace(name))
	if strings.HasSuffix(name, "[1m]") || strings.HasSuffix(name, "-1m") {
		m.ContextTokens = max(m.ContextTokens, 1_000_000)
	}
	return m
}
