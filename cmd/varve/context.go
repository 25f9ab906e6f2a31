package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
)

type contextCommand struct {
	Session   string `arg:"" help:"Session id."`
	MaxTokens *int   `help:"Leave whole oldest units out until the view has at most this many tokens."`
	Full      bool   `help:"The whole log instead of the compacted view."`
	Pretty    bool   `help:"As text for a person instead of JSON."`
}

// Run prints the view as the API sends it.
func (c *contextCommand) Run(ctx context.Context, g *Globals) error {
	client, err := g.Client()
	if err != nil {
		return err
	}
	return c.print(ctx, client, os.Stdout)
}

func (c *contextCommand) print(ctx context.Context, client *Client, out io.Writer) error {
	query := url.Values{}
	if c.MaxTokens != nil {
		query.Set("max_tokens", strconv.Itoa(*c.MaxTokens)) // also one below 1, which the API refuses
	}
	if c.Full {
		query.Set("view", "full")
	}
	raw, err := client.decode(ctx, call{method: http.MethodGet, path: []string{"sessions", c.Session, "context"}, query: query}, nil)
	if err != nil {
		return err
	}
	if !c.Pretty {
		_, err = out.Write(append(raw, '\n'))
		return err
	}
	var v view
	if err := json.Unmarshal(raw, &v); err != nil {
		return err
	}
	return v.write(out)
}
