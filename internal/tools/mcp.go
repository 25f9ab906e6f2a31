package tools

import (
	"context"

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
	for _, d := range list {
		server.AddTool(d.MCP(), func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return call(ctx, req.Params.Name, req.Params.Arguments), nil
		})
	}
	return server
}

// MCP returns a tool as MCP lists it.
func (d *Definition) MCP() *mcp.Tool {
	reads, no := d.Name != RequestCompaction, false
	hints := &mcp.ToolAnnotations{Title: d.Title, ReadOnlyHint: reads, IdempotentHint: true, OpenWorldHint: &no}
	if !reads {
		hints.DestructiveHint = &no
	}
	return &mcp.Tool{
		Name: d.Name, Title: d.Title, Description: d.Description, InputSchema: d.InputSchema(),
		OutputSchema: d.Output, Annotations: hints,
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
