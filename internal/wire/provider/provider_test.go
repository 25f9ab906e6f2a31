package provider_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire/provider"
)

func TestEveryFormatHasItsRow(t *testing.T) {
	t.Parallel()
	for _, f := range session.Formats() {
		facts, codes := provider.Of(f), provider.Of(f).Codes
		for name, code := range map[string]string{
			"Unanswered": codes.Unanswered, "Orphan": codes.Orphan, "Empty": codes.Empty, "Content": codes.Content, "CallID": codes.CallID,
			"Members": codes.Members,
		} {
			if code == "" {
				t.Errorf("%s: the rule %s has no code", f, name)
			}
		}
		switch {
		case len(facts.Roles) == 0:
			t.Errorf("%s knows no role", f)
		case facts.IDMax < 32:
			t.Errorf("%s: ids of %d characters leave no room for a hash", f, facts.IDMax)
		case facts.FirstUser != (codes.First != ""):
			t.Errorf("%s: the rule about the first message and its code do not agree", f)
		}
	}
	if facts := provider.Of("no format"); facts == nil || facts.KnowsRole("user") || facts.FitsID("a") {
		t.Error("an unknown format has facts")
	}
}

func TestTheFormatsThatSeparateTheSystemPrompt(t *testing.T) {
	t.Parallel()
	want := []int16{session.Anthropic.Number(), session.Gemini.Number()}
	if got := provider.SeparatingSystem(); !slices.Equal(got, want) {
		t.Errorf("the formats are %d, want %d", got, want)
	}
}

func TestFitsID(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		format session.Format
		id     string
		want   bool
	}{
		{session.OpenAIChat, "", false},
		{session.OpenAIChat, "call 1.é", true},
		{session.OpenAIChat, strings.Repeat("é", 40), true},
		{session.OpenAIChat, strings.Repeat("é", 41), false},
		{session.Anthropic, "toolu_1-A", true},
		{session.Anthropic, "toolu 1", false},
		{session.Anthropic, "é", false},
		{session.Anthropic, strings.Repeat("a", 64), true},
		{session.Anthropic, strings.Repeat("a", 65), false},
	} {
		if got := provider.Of(test.format).FitsID(test.id); got != test.want {
			t.Errorf("%s: FitsID(%q) = %t", test.format, test.id, got)
		}
	}
}

// TestOwnersHaveSeveralNames has the names by which gateways and libraries call models whose encrypted reasoning is
// bound to who serves them.
func TestOwnersHaveSeveralNames(t *testing.T) {
	t.Parallel()
	for owner, names := range map[string][]string{
		"openai": {"gpt-5.6", "openai/gpt-5.6", "openai:gpt-5.6", "openai/responses/gpt-5.6", "openrouter/openai/gpt-5.6", "vercel/openai/gpt-5.6", "litellm_proxy/gpt-5.6", "ft:gpt-4o-2024-08-06:acme::id", "o3", "gpt-5.6:nitro"},
		"azure":  {"azure/gpt-5.6", "azure_ai/gpt-5.6", "azure:gpt-5.6", "azure-openai:gpt-5.6", "litellm_proxy/azure/gpt-5.6"},
		"xai":    {"grok-4.5", "xai/grok-4.5", "x-ai/grok-4.5", "xai:grok-4.5", "openrouter/x-ai/grok-4.5"},
		"":       {"my-deployment", "", "llama-3.3-70b"},
		"groq":   {"groq/openai/gpt-oss-120b"},
	} {
		for _, name := range names {
			if got := provider.Owner(name); got != owner {
				t.Errorf("%q is %q, not %q", name, got, owner)
			}
		}
	}
}
