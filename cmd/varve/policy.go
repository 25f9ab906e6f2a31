package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

type policyCommand struct {
	Show     policyShowCommand     `cmd:"" help:"Print a policy and where its values come from."`
	Set      policySetCommand      `cmd:"" help:"Set the tenant's default policy, or a session's own."`
	Check    policyCheckCommand    `cmd:"" help:"Say what is wrong with a policy, or what it would do; nothing is stored."`
	Profiles policyProfilesCommand `cmd:"" help:"List the profiles, or print one."`
}

// shownPolicy is a policy as the API tells of it.
type shownPolicy struct {
	Version   session.PolicyVersion `json:"policy_version"`
	Effective json.RawMessage       `json:"effective"`
	Sources   map[string]string     `json:"sources"`
}

type policyShowCommand struct {
	Session string `help:"The policy of this session instead of the tenant's default."`
	All     bool   `help:"Also the values that are the profile's."`
}

// Run prints the policy.
func (c *policyShowCommand) Run(ctx context.Context, g *Globals) error {
	client, err := g.Client()
	if err != nil {
		return err
	}
	return client.showPolicy(ctx, os.Stdout, call{method: http.MethodGet, path: policyPath(c.Session)}, c.All)
}

func policyPath(session string) []string {
	if session == "" {
		return []string{"policy"}
	}
	return []string{"sessions", session, "policy"}
}

// showPolicy prints the policy that the API answers with.
func (c *Client) showPolicy(ctx context.Context, out io.Writer, k call, all bool) error {
	var p shownPolicy
	raw, err := c.decode(ctx, k, &p)
	switch {
	case err != nil:
		return err
	case c.json:
		_, err = out.Write(append(raw, '\n'))
		return err
	}
	return p.write(out, all)
}

func (p *shownPolicy) write(out io.Writer, all bool) error {
	var of struct {
		Profile string `json:"profile"`
	}
	if err := json.Unmarshal(p.Effective, &of); err != nil {
		return err
	}
	fmt.Fprintf(out, "profile %s, %s\n", of.Profile, versionText(p.Version))
	table, left := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0), 0
	fmt.Fprintln(table, "FIELD\tVALUE\tFROM")
	p.each(rawjson.Value(p.Effective), "", func(pointer string, value []byte) {
		source := p.Sources[pointer]
		if strings.HasPrefix(source, "profile:") && !all {
			left++
			return
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", printable(strings.ReplaceAll(pointer[1:], "/", ".")), shortValue(value), source)
	})
	if err := table.Flush(); err != nil || left == 0 {
		return err
	}
	_, err := fmt.Fprintf(out, "%d more values are the profile's; --all prints them\n", left)
	return err
}

func versionText(v session.PolicyVersion) string {
	if v.Session == 0 {
		return fmt.Sprintf("version %d of the tenant's default", v.Tenant)
	}
	return fmt.Sprintf("version %d of the session's own, on version %d of the tenant's default", v.Session, v.Tenant)
}

// each walks through the fields in their order. What has a source of its own is a field, or a tool of a table.
func (p *shownPolicy) each(at rawjson.Span, pointer string, do func(pointer string, value []byte)) {
	if _, ok := p.Sources[pointer]; ok {
		do(pointer, at.Of(p.Effective))
	}
	if p.Effective[at.Start] != '{' {
		return
	}
	for key, value := range rawjson.Members(p.Effective, at.Start) {
		name, _ := rawjson.Unquote(nil, key.Of(p.Effective))
		p.each(value, pointer+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(string(name)), do)
	}
}

// shortValue is a value that fits into a table.
func shortValue(value []byte) string {
	const most = 60
	text := printable(string(value))
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

type policySetCommand struct {
	File    string `arg:"" help:"JSON file with the policy; - is standard input."`
	Session string `help:"The own policy of this session instead of the tenant's default."`
	Merge   bool   `help:"Merge it into what is there instead of replacing that."`
}

// Run sets the policy and prints what it is now.
func (c *policySetCommand) Run(ctx context.Context, g *Globals) error {
	client, err := g.Client()
	if err != nil {
		return err
	}
	return c.set(ctx, client, os.Stdout)
}

func (c *policySetCommand) set(ctx context.Context, client *Client, out io.Writer) error {
	document, err := policyFile(c.File)
	if err != nil {
		return err
	}
	k := call{method: http.MethodPut, path: policyPath(c.Session), body: document}
	if c.Merge {
		k.method = http.MethodPatch
	}
	if _, err := client.decode(ctx, k, nil); err != nil {
		return err
	}
	return client.showPolicy(ctx, out, call{method: http.MethodGet, path: policyPath(c.Session)}, false)
}

func policyFile(file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(os.Stdin)
	}
	return os.ReadFile(file)
}

type policyCheckCommand struct {
	File    string `arg:"" help:"JSON file with the policy; - is standard input."`
	Session bool   `help:"As a session's own, on top of the tenant's default, instead of as the default."`
	All     bool   `help:"Also print the values that are the profile's."`
}

// Run prints what the policy would be, or ends with all that is wrong with it.
func (c *policyCheckCommand) Run(ctx context.Context, g *Globals) error {
	client, err := g.Client()
	if err != nil {
		return err
	}
	document, err := policyFile(c.File)
	if err != nil {
		return err
	}
	k := call{method: http.MethodPost, path: []string{"policy", "check"}, body: document}
	if c.Session {
		k.query = url.Values{"as": {"session"}}
	}
	return client.showPolicy(ctx, os.Stdout, k, c.All)
}

type policyProfilesCommand struct {
	Name string `arg:"" optional:"" help:"A profile to print as JSON."`
}

// Run lists the profiles, or prints one.
func (c *policyProfilesCommand) Run(ctx context.Context, g *Globals) error {
	client, err := g.Client()
	if err != nil {
		return err
	}
	return c.print(ctx, client, os.Stdout)
}

func (c *policyProfilesCommand) print(ctx context.Context, client *Client, out io.Writer) error {
	var list struct {
		Data []struct {
			Name   string          `json:"name"`
			Policy json.RawMessage `json:"policy"`
		} `json:"data"`
	}
	raw, err := client.decode(ctx, call{method: http.MethodGet, path: []string{"policies", "profiles"}}, &list)
	if err != nil {
		return err
	}
	if client.json && c.Name == "" {
		_, err := out.Write(append(raw, '\n'))
		return err
	}
	names := []string{}
	for _, p := range list.Data {
		if p.Name == c.Name {
			return writeIndented(out, p.Policy)
		}
		names = append(names, p.Name)
	}
	if c.Name != "" {
		return &usageError{fmt.Sprintf("there is no profile %q; there are %s", c.Name, strings.Join(names, ", "))}
	}
	_, err = fmt.Fprintln(out, strings.Join(names, "\n"))
	return err
}

func writeIndented(out io.Writer, document []byte) error {
	var text bytes.Buffer
	if err := json.Indent(&text, document, "", "  "); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, text.String())
	return err
}

// readPolicy reads the value of --policy: JSON, or the file that it names, - for standard input. It is empty for none.
func readPolicy(text string) (json.RawMessage, error) {
	if text == "" {
		return nil, nil
	}
	raw := []byte(text)
	if !strings.HasPrefix(strings.TrimSpace(text), "{") {
		var err error
		if raw, err = policyFile(text); err != nil {
			return nil, &usageError{"--policy: " + err.Error()}
		}
	}
	if !json.Valid(raw) {
		return nil, &usageError{"--policy is not JSON"}
	}
	return raw, nil
}
