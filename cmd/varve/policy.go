package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/command"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/terminal"
)

type policyCommand struct {
	Show     policyShowCommand     `cmd:"" help:"Print a policy and where its values come from."`
	Set      policySetCommand      `cmd:"" help:"Set the tenant's default policy, or a session's own."`
	Check    policyCheckCommand    `cmd:"" help:"Report what is wrong with a policy, or its values; nothing is stored."`
	Profiles policyProfilesCommand `cmd:"" help:"List the profiles, or print one."`
	Explain  policyExplainCommand  `cmd:"" help:"Print what the document of a profile's system says of it."`
	From     policyFromCommand     `cmd:"" help:"Translate another system's configuration into a policy."`
}

type policyShowCommand struct {
	Session string `help:"The policy of this session instead of the tenant's default."`
	All     bool   `help:"Also the values that are the profile's."`
}

// Run prints the policy.
func (c *policyShowCommand) Run(ctx context.Context, to *command.Console) error {
	return showPolicy(ctx, to, c.All, client.Policy("GET", c.Session), client.Options{}, c.Session)
}

// policyView is a policy field by field. Without all, those that are the profile's are only counted.
type policyView struct {
	Profile string `json:"profile"`
	Version session.PolicyVersion
	Fields  []policyField
	Omitted int
}

type policyField struct{ Name, Value, Source string }

// showPolicy prints the policy that a route answers with.
func showPolicy(
	ctx context.Context, to *command.Console, all bool, r client.Route[protocol.Policy], o client.Options, args ...any,
) error {
	found, err := r.With(ctx, to.API, o, args...)
	if err != nil {
		return err
	}
	p := &found.Value
	view := policyView{Version: p.Version}
	if err := json.Unmarshal(p.Effective, &view); err != nil {
		return err
	}
	eachField(p, rawjson.Value(p.Effective), "", func(pointer string, value []byte) {
		source := p.Sources[pointer]
		if strings.HasPrefix(source, "profile:") && !all {
			view.Omitted++
			return
		}
		name := strings.ReplaceAll(pointer[1:], "/", ".")
		text := terminal.Cut(terminal.Printable(string(value)), 61)
		view.Fields = append(view.Fields, policyField{name, text, source})
	})
	return to.Print(named("policy"), found.Raw, view)
}

// eachField calls do for the fields in their order. A value with its own source is a field, or a tool of a table.
func eachField(p *protocol.Policy, at rawjson.Span, pointer string, do func(pointer string, value []byte)) {
	if _, ok := p.Sources[pointer]; ok {
		do(pointer, at.Of(p.Effective))
	}
	if p.Effective[at.Start] != '{' {
		return
	}
	for key, value := range rawjson.Members(p.Effective, at.Start) {
		name, _ := rawjson.Unquote(nil, key.Of(p.Effective))
		eachField(p, value, pointer+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(string(name)), do)
	}
}

type policySetCommand struct {
	File    string `arg:"" help:"JSON file with the policy; - is standard input."`
	Session string `help:"The own policy of this session instead of the tenant's default."`
	Merge   bool   `help:"Merge it into what is there instead of replacing that."`
}

// Run sets the policy and prints the new one.
func (c *policySetCommand) Run(ctx context.Context, to *command.Console) error {
	document, err := command.ReadFile(c.File)
	if err != nil {
		return err
	}
	method := "PUT"
	if c.Merge {
		method = "PATCH"
	}
	set := client.Policy(method, c.Session)
	if _, err := set.With(ctx, to.API, client.Options{Body: document}, c.Session); err != nil {
		return err
	}
	return (&policyShowCommand{Session: c.Session}).Run(ctx, to)
}

type policyCheckCommand struct {
	File    string `arg:"" help:"JSON file with the policy; - is standard input."`
	Session bool   `help:"As a session's own, on top of the tenant's default, instead of as the default."`
	All     bool   `help:"Also print the values that are the profile's."`
}

// Run prints what the policy would be, or ends with everything that is wrong with it.
func (c *policyCheckCommand) Run(ctx context.Context, to *command.Console) error {
	document, err := command.ReadFile(c.File)
	if err != nil {
		return err
	}
	o := client.Options{Body: document}
	if c.Session {
		o.Query = client.Query{"as": "session"}
	}
	return showPolicy(ctx, to, c.All, client.CheckPolicy, o)
}

type policyProfilesCommand struct {
	Name string `arg:"" optional:"" help:"A profile to print as JSON."`
}

// Run lists the profiles, or prints one.
func (c *policyProfilesCommand) Run(ctx context.Context, to *command.Console) error {
	list, err := client.Profiles.Call(ctx, to.API)
	if err != nil {
		return err
	}
	if c.Name == "" {
		return to.Print(named("profiles"), list.Raw, list.Value)
	}
	p, err := profileOf(list.Value.Data, c.Name)
	if err != nil {
		return err
	}
	return command.WriteIndented(to.Out, p.Policy)
}

// profileOf returns the profile of a name.
func profileOf(list []protocol.Profile, name string) (*protocol.Profile, error) {
	names := []string{}
	for i := range list {
		if list[i].Name == name {
			return &list[i], nil
		}
		names = append(names, list[i].Name)
	}
	return nil, command.Usage(fmt.Sprintf("there is no profile %q; there are %s", name, strings.Join(names, ", ")))
}

type policyExplainCommand struct {
	Name string `arg:"" help:"A profile."`
	All  bool   `help:"Also the values of which the document says nothing."`
}

// explainedView is a profile with what its document says. Without all, fields that it does not know are only counted.
type explainedView struct {
	*protocol.Profile
	Fields  []protocol.Explained
	Omitted int
}

// Run prints what a profile follows.
func (c *policyExplainCommand) Run(ctx context.Context, to *command.Console) error {
	list, err := client.Profiles.Call(ctx, to.API)
	if err != nil {
		return err
	}
	p, err := profileOf(list.Value.Data, c.Name)
	if err != nil {
		return err
	}
	if p.Document == "" {
		return command.Usage(c.Name + " follows no other system; docs/policy.md has its fields")
	}
	raw, err := json.Marshal(p)
	if err != nil {
		return err
	}
	view := explainedView{Profile: p}
	for _, e := range p.Explained {
		if e.Section == "" && !c.All {
			view.Omitted++
			continue
		}
		e.Value = json.RawMessage(terminal.Cut(terminal.Printable(string(e.Value)), 40))
		view.Fields = append(view.Fields, e)
	}
	return to.Print(named("explained"), raw, view)
}
