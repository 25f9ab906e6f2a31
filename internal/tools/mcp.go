package tools

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Call runs a call of a tool for MCP. given are its arguments as they were sent.
type Call func(ctx context.Context, name string, given []byte) *mcp.CallToolResult

// NewMCP returns an MCP server that has some of the tools. It keeps nothing from one request to the next.
func NewMCP(version string, list []*Definition, call Call) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "varve", Title: "Varve", Version: version}, &mcp.ServerOptions{
		Instructions: Instructions,
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
		SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope = "private" },
	})
	tools := listed()
	for _, d := range list {
		server.AddTool(tools[d.Name], func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return call(ctx, req.Params.Name, req.Params.Arguments), nil
		})
	}
	return server
}

// listed are the tools as MCP lists them, by name. A server is made for each request, and takes only schemas of this
// type as they are.
var listed = sync.OnceValue(func() map[string]*mcp.Tool {
	made := map[string]*mcp.Tool{}
	for _, d := range definitions {
		made[d.Name] = d.mcp()
	}
	return made
})

func typed(schema any) *jsonschema.Schema {
	encoded, err := json.Marshal(schema)
	if err != nil {
		panic(err) // they are literals
	}
	made := &jsonschema.Schema{}
	if err := json.Unmarshal(encoded, made); err != nil {
		panic(err)
	}
	return made
}

func (d *Definition) mcp() *mcp.Tool {
	reads, no := d.Name != RequestCompaction, false
	hints := &mcp.ToolAnnotations{Title: d.Title, ReadOnlyHint: reads, IdempotentHint: true, OpenWorldHint: &no}
	if !reads {
		hints.DestructiveHint = &no
	}
	return &mcp.Tool{
		Name: d.Name, Title: d.Title, Description: d.Description, InputSchema: typed(d.InputSchema()),
		OutputSchema: typed(d.Output), Annotations: hints,
	}
}

// MCP returns an answer as MCP has it: images are blocks behind the text.
func (a *Answer) MCP() *mcp.CallToolResult {
	result := &mcp.CallToolResult{
		Content: []mcp.Content{&mcp.TextContent{Text: a.Text}}, StructuredContent: a.Structured, IsError: a.IsError,
	}
	for _, image := range a.Images {
		result.Content = append(result.Content, &mcp.ImageContent{Data: image.Data, MIMEType: image.MediaType})
	}
	return result
}
