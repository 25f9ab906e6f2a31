package llm

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/textproto"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

var errKey = errors.New("a key must be a string")

// Kind is the protocol that a provider speaks.
type Kind string

// The protocols.
const (
	OpenAI          Kind = "openai"           // Chat Completions, which gateways and local servers speak, too
	OpenAIResponses Kind = "openai-responses" // Responses
	Anthropic       Kind = "anthropic"        // Messages
)

var kinds = []Kind{OpenAI, OpenAIResponses, Anthropic}

// Config has the providers and models that an operator has configured, each under the operator's own name.
type Config struct {
	Providers map[string]Provider   `json:"providers"`
	Models    map[string]Definition `json:"models"`
}

// Provider is where and how models are asked.
type Provider struct {
	Kind    Kind   `json:"kind"`
	BaseURL string `json:"base_url"` // "" for the provider's own
	Key     Key    `json:"key"`
	// KeyFile is a file with the key. Whoever reads the configuration reads Key from there; calls read it again.
	KeyFile string `json:"key_file"`
	// Headers are sent with each request; their values may be secrets.
	Headers map[string]Key `json:"headers"`
	// AllowPrivate allows addresses of this machine and of private networks, see egress.Rule, and http at these.
	AllowPrivate bool `json:"allow_private"`
	// Concurrency is how many calls one process makes at once; 0 for 4.
	Concurrency int `json:"concurrency"`
	// Timeout is the deadline of a call with its retries, in seconds; 0 for 120.
	Timeout float64 `json:"timeout_seconds"`
	// Attempts is how often a call is tried that the provider has not worked on; 0 for 3.
	Attempts int     `json:"attempts"`
	Breaker  Breaker `json:"breaker"`
}

// Breaker says when a model is no longer asked, and for how long.
type Breaker struct {
	Failures int     `json:"failures"` // one after the other; 0 for 5
	Seconds  float64 `json:"seconds"`  // until one call is let through to see; 0 for 30
}

// Definition is a model of a provider.
type Definition struct {
	Provider  string `json:"provider"`
	Model     string `json:"model"`      // as the provider names it
	Window    int    `json:"window"`     // tokens of input and output together
	MaxOutput int    `json:"max_output"` // tokens of an answer; 0 for a quarter of the window, 4096 at most
	// Reasoning is how many tokens the model may think with before an answer: providers count them as parts of it. 0
	// for none or, if it is known that models of the name think unasked, or Effort is set, as many as MaxOutput's 0.
	Reasoning   int      `json:"reasoning_tokens"`
	Price       Price    `json:"price"`
	Temperature *float64 `json:"temperature"` // nil: not sent
	Effort      string   `json:"effort"`      // of reasoning; "": not sent
	// Limit names the member of a request to Chat Completions that bounds the answer: "max_tokens", which local servers
	// know, or "max_completion_tokens", which OpenAI's own models demand. "" for what the provider's address suggests.
	Limit string `json:"limit"`
}

// The members that bound an answer of Chat Completions.
const (
	maxTokens           = "max_tokens"
	maxCompletionTokens = "max_completion_tokens"
)

// The bounds of an operator's figures, and what they are by default.
const (
	minWindow, maxWindow               = 1_000, 10_000_000
	defaultConcurrency, maxConcurrency = 4, 1000
	defaultTimeout, maxTimeout         = 120, 3600
	defaultAttempts, maxAttempts       = 3, 10
	defaultFailures, maxFailures       = 5, 1000
	defaultRest, maxRest               = 30, 3600
	defaultOutput                      = 4096
	maxPrice                           = 1e6 // for a million tokens
)

// ownURL has the addresses of the providers themselves.
var ownURL = map[Kind]string{
	OpenAI: "https://api.openai.com/v1/", OpenAIResponses: "https://api.openai.com/v1/",
	Anthropic: "https://api.anthropic.com/",
}

// withDefaults returns the provider with everything that it leaves out.
func (p Provider) withDefaults() Provider {
	p.BaseURL = cmp.Or(p.BaseURL, ownURL[p.Kind])
	if !strings.HasSuffix(p.BaseURL, "/") {
		p.BaseURL += "/"
	}
	p.Concurrency = cmp.Or(p.Concurrency, defaultConcurrency)
	p.Timeout = cmp.Or(p.Timeout, defaultTimeout)
	p.Attempts = cmp.Or(p.Attempts, defaultAttempts)
	p.Breaker.Failures = cmp.Or(p.Breaker.Failures, defaultFailures)
	p.Breaker.Seconds = cmp.Or(p.Breaker.Seconds, defaultRest)
	return p
}

// withDefaults returns the model of that provider with everything that it leaves out.
func (d Definition) withDefaults(p Provider) Definition {
	some := min(d.Window/4, defaultOutput)
	d.MaxOutput = cmp.Or(d.MaxOutput, some)
	if d.Reasoning == 0 && (d.Effort != "" || thinkers.MatchString(d.Model)) {
		d.Reasoning = some
	}
	if d.Limit == "" {
		d.Limit = maxTokens
		if ownHost(p.BaseURL) {
			d.Limit = maxCompletionTokens
		}
	}
	return d
}

// thinkers matches the names of models that think before they answer if nothing is said about it.
var thinkers = regexp.MustCompile(
	`(?i)\b(?:o[1-9]|gpt-5|gpt-oss|deepseek-r|qwen3|qwq|gemini-(?:2\.5|[3-9])|grok-[4-9]|magistral)`)

// ownHost reports whether an address belongs to OpenAI, or serves its models.
func ownHost(base string) bool {
	u, err := url.Parse(base)
	if err != nil {
		return false
	}
	host := strings.ToLower(u.Hostname())
	return strings.HasSuffix(host, ".openai.com") || strings.HasSuffix(host, ".openai.azure.com")
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Validate returns all mistakes, each with the place (/models/small/window), and nil for none. It never quotes a key.
func (c Config) Validate() error {
	v := &validation{}
	for _, name := range slices.Sorted(maps.Keys(c.Providers)) {
		v.at = "/providers/" + name
		v.name(name)
		v.provider(c.Providers[name])
	}
	for _, name := range slices.Sorted(maps.Keys(c.Models)) {
		v.at = "/models/" + name
		v.name(name)
		v.model(c, c.Models[name])
	}
	return errors.Join(v.problems...)
}

// validation collects everything that is wrong.
type validation struct {
	at       string
	problems []error
}

func (v *validation) wrong(field, format string, args ...any) {
	place := v.at
	if field != "" {
		place += "/" + field
	}
	v.problems = append(v.problems, fmt.Errorf("%s: %s", place, fmt.Sprintf(format, args...)))
}

// names are those that may stand in a policy, a label of a metric and an address.
var names = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

func (v *validation) name(name string) {
	if !names.MatchString(name) {
		v.wrong("", "the name must have 1 to 64 letters, digits and any of ._- and begin with a letter or digit")
	}
}

func (v *validation) within(field string, value, minimum, maximum float64) {
	if !(value >= minimum && value <= maximum) {
		v.wrong(field, "%v must be from %v to %v", value, minimum, maximum)
	}
}

func (v *validation) provider(p Provider) {
	if !slices.Contains(kinds, p.Kind) {
		v.wrong("kind", "%q is unknown: it must be one of %q", p.Kind, kinds)
	}
	v.address(p)
	if strings.ContainsFunc(p.Key.reveal(), notHeader) {
		v.wrong("key", "it must have no control characters")
	}
	for _, name := range slices.Sorted(maps.Keys(p.Headers)) {
		v.header(name, p.Headers[name])
	}
	v.within("concurrency", float64(p.Concurrency), 0, maxConcurrency)
	v.within("timeout_seconds", p.Timeout, 0, maxTimeout)
	v.within("attempts", float64(p.Attempts), 0, maxAttempts)
	v.within("breaker/failures", float64(p.Breaker.Failures), 0, maxFailures)
	v.within("breaker/seconds", p.Breaker.Seconds, 0, maxRest)
}

// address checks the base URL. No message quotes it, for it may have a password in it.
func (v *validation) address(p Provider) {
	if p.BaseURL == "" {
		return
	}
	u, err := url.Parse(p.BaseURL)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "":
		v.wrong("base_url", "it must be an address such as https://gateway.example.com/v1")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		v.wrong("base_url", "it must have no user, query or fragment: a key belongs in key or headers")
	case u.Scheme == "http" && !p.AllowPrivate:
		v.wrong("base_url", "http is only for a server on this machine or in a private network: use https, "+
			"or set allow_private")
	case u.Scheme != "https" && u.Scheme != "http":
		v.wrong("base_url", "it must begin with https://")
	}
}

// token is what the name of a header may be.
var token = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$")

// ownHeaders are set for each request, and no operator's header may replace them.
var ownHeaders = []string{"Host", "Content-Length", "Content-Type", "Transfer-Encoding", "Connection"}

func (v *validation) header(name string, value Key) {
	if !token.MatchString(name) || slices.Contains(ownHeaders, textproto.CanonicalMIMEHeaderKey(name)) {
		v.wrong("headers/"+name, "it must be the name of a header that is not set already")
	}
	if !value.Set() || strings.ContainsFunc(value.reveal(), notHeader) {
		v.wrong("headers/"+name, "its value must be a text without control characters")
	}
}

// key returns the key of a provider, as its file has it now. Where that has none, it is the one that it had.
func (p *Provider) key() Key {
	text, err := os.ReadFile(p.KeyFile)
	if key := NewKey(string(text)); err == nil && key.Set() && !strings.ContainsFunc(key.reveal(), notHeader) {
		return key
	}
	return p.Key
}

// notHeader reports whether a character cannot be in the value of a header.
func notHeader(r rune) bool { return r < ' ' || r > '~' }

// hottest returns the highest temperature that a protocol takes.
func hottest(k Kind) float64 {
	if k == Anthropic {
		return 1
	}
	return 2
}

func (v *validation) model(c Config, d Definition) {
	p, known := c.Providers[d.Provider]
	if !known {
		v.wrong("provider", "%q is not configured: the providers are %q", d.Provider,
			slices.Sorted(maps.Keys(c.Providers)))
	}
	if d.Model == "" {
		v.wrong("model", "it must be the name of the model at its provider")
	}
	v.within("window", float64(d.Window), minWindow, maxWindow)
	v.within("max_output", float64(d.MaxOutput), 0, float64(max(d.Window-1, 0)))
	v.within("reasoning_tokens", float64(d.Reasoning), 0, float64(max(d.Window-cmp.Or(d.MaxOutput, 1), 0)))
	v.within("price/input", d.Price.Input, 0, maxPrice)
	v.within("price/cached", d.Price.Cached, 0, maxPrice)
	v.within("price/output", d.Price.Output, 0, maxPrice)
	if d.Temperature != nil {
		v.within("temperature", *d.Temperature, 0, hottest(p.Kind))
	}
	if d.Effort != "" && (!names.MatchString(d.Effort) || p.Kind == Anthropic) {
		v.wrong("effort", "%q must be a level such as low, and the provider one of OpenAI's protocols", d.Effort)
	}
	if d.Limit != "" && (d.Limit != maxTokens && d.Limit != maxCompletionTokens || p.Kind != OpenAI) {
		v.wrong("limit", "%q must be %s or %s, and the provider of kind %s",
			d.Limit, maxTokens, maxCompletionTokens, OpenAI)
	}
}
