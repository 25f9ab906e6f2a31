package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
)

type previewCommand struct {
	Session string `arg:"" help:"Session id."`
	Policy  string `xor:"policy" help:"A policy, or changes to the session's: JSON, or a file of it (- is standard input). Without one, the session's policy."`
	Profile string `xor:"policy" help:"A profile for the policy: default, tool-compaction, cortex, falai, llm-proxy or codelia."`
	From    string `enum:",checkpoint,log" default:"" help:"Where to start, checkpoint or log. Without it, where a run would."`
	All     bool   `help:"Every part, also those that stay, with the reason why."`
}

// Run prints what a compaction of the session would do. Nothing is written.
func (c *previewCommand) Run(ctx context.Context, g *Globals) error {
	client, err := g.Client()
	if err != nil {
		return err
	}
	plan, raw, err := c.preview(ctx, client)
	if err != nil {
		return err
	}
	if g.JSON {
		_, err = os.Stdout.Write(append(raw, '\n'))
		return err
	}
	most := mostParts
	if c.All {
		most = len(plan.Actions)
	}
	return plan.write(os.Stdout, c.Session, most, width(os.Stdout))
}

func (c *previewCommand) preview(ctx context.Context, client *Client) (plan plan, raw []byte, err error) {
	body, err := c.body()
	if err != nil {
		return plan, nil, err
	}
	query := url.Values{}
	if c.All {
		query.Set("actions", "all")
	}
	raw, err = client.decode(ctx, call{method: http.MethodPost, path: []string{"sessions", c.Session, "preview"}, query: query, body: body}, &plan)
	return plan, raw, err
}

func (c *previewCommand) body() ([]byte, error) {
	var body struct {
		Policy json.RawMessage `json:"policy,omitempty"`
		From   string          `json:"from,omitempty"`
	}
	body.From = c.From
	switch {
	case c.Profile != "":
		body.Policy = fmt.Appendf(nil, `{"profile":%q}`, c.Profile)
	case c.Policy != "":
		document, err := readPolicy(c.Policy)
		if err != nil {
			return nil, err
		}
		body.Policy = document
	}
	return json.Marshal(body)
}
