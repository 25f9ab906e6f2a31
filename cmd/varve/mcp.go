package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/varve-dev/varve/internal/command"
	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tools"
)

type mcpCommand struct {
	Session string `help:"Session id; not needed with a session token." env:"VARVE_SESSION"`
}

// Help returns what varve mcp --help shows below its flags.
func (c *mcpCommand) Help() string { return helpText("mcp") }

// Run answers an agent on standard input and output until the input ends. What goes wrong is told on standard error.
func (c *mcpCommand) Run(ctx context.Context, to *command.Console) error {
	if c.Session == "" && !strings.HasPrefix(to.API.Key, "st_") {
		return command.Usage("--session is missing: an API key reaches every session (VARVE_KEY may be a session " +
			"token instead, which varve tokens create makes)")
	}
	b := newBridge(to.API.Base.String(), to.API.Key, c.Session)
	return b.serve(ctx, &mcp.IOTransport{Reader: os.Stdin, Writer: writeCloser{to.Out}})
}

// writeCloser is a writer that others close.
type writeCloser struct{ io.Writer }

func (writeCloser) Close() error { return nil }

// bridge passes calls on to the API. It connects with the first call, and again after a failure: the API may start
// later than the agent, and restart.
type bridge struct {
	url    string
	client *http.Client
	notes  io.Writer
	mu     sync.Mutex
	api    *mcp.ClientSession // nil while there is none
}

func newBridge(url, key, session string) *bridge {
	as := &caller{key: key, session: session}
	return &bridge{url: url, client: &http.Client{Transport: as, Timeout: time.Minute}, notes: os.Stderr}
}

// serve answers over a transport until that ends.
func (b *bridge) serve(ctx context.Context, over mcp.Transport) error {
	server := tools.NewMCP(config.Version(), b.offered(ctx), b.call)
	err := server.Run(ctx, over)
	if ctx.Err() != nil {
		return nil // an interrupt is how it ends
	}
	return err
}

// offered returns the tools that the API lets the caller use: those that read, if it cannot be asked now.
func (b *bridge) offered(ctx context.Context) []*tools.Definition {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	reads := tools.All(func(scope session.Scope) bool { return scope != session.ScopeCompact })
	api, err := b.connected(ctx)
	if err != nil {
		fmt.Fprintf(b.notes, "varve mcp: %s: %v\n", b.url, err)
		return reads
	}
	listed, err := api.ListTools(ctx, nil)
	if err != nil {
		fmt.Fprintf(b.notes, "varve mcp: %s: %v\n", b.url, err)
		return reads
	}
	var list []*tools.Definition
	for _, tool := range listed.Tools {
		if d := tools.Find(tool.Name); d != nil {
			list = append(list, d)
		}
	}
	return list
}

// connected returns the connection to the API.
func (b *bridge) connected(ctx context.Context) (*mcp.ClientSession, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.api != nil {
		return b.api, nil
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "varve mcp", Version: config.Version()}, nil)
	api, err := client.Connect(ctx, &mcp.StreamableClientTransport{
		Endpoint: strings.TrimRight(b.url, "/") + "/mcp", HTTPClient: b.client, MaxRetries: -1,
		DisableStandaloneSSE: true,
	}, nil)
	if err == nil {
		b.api = api
	}
	return api, err
}

// drop ends a connection that failed, so that the next call makes a new one.
func (b *bridge) drop(failed *mcp.ClientSession) {
	b.mu.Lock()
	if b.api == failed {
		b.api = nil
	}
	b.mu.Unlock()
	_ = failed.Close() // it failed already
}

// call passes a call on, twice if the connection was lost. An API that does not answer is the tool's error, which says
// what to do.
func (b *bridge) call(ctx context.Context, name string, given []byte) *mcp.CallToolResult {
	with := &mcp.CallToolParams{Name: name}
	if len(given) > 0 {
		with.Arguments = json.RawMessage(given)
	}
	var failure error
	for range 2 {
		api, err := b.connected(ctx)
		if err == nil {
			var result *mcp.CallToolResult
			result, err = api.CallTool(ctx, with)
			if err == nil {
				return result
			}
			b.drop(api)
		}
		failure = err
	}
	fmt.Fprintf(b.notes, "varve mcp: %s: %v\n", name, failure)
	text := fmt.Sprintf("%s did not run: Varve at %s gave no answer (%v). Tell the user: is it running there "+
		"(varve up), and are VARVE_URL, VARVE_KEY and --session right? Then call %s again.", name, b.url, failure, name)
	return (&tools.Answer{Text: text, IsError: true}).MCP()
}

// caller sends requests as the holder of a key or a token, and turns refusals into errors that have their reason.
type caller struct{ key, session string }

// RoundTrip sends a request.
func (c *caller) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+c.key)
	if c.session != "" {
		r.Header.Set("X-Varve-Session", c.session)
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil || answer.Header.Get("Content-Type") != "application/problem+json" {
		return answer, err
	}
	defer answer.Body.Close()
	var problem struct {
		Detail string `json:"detail"`
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, 64<<10)).Decode(&problem); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("%s: %s", answer.Status, problem.Detail)
}
