package search

import (
	"context"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/command"
)

// hits is the route of a search, as its command calls it.
const hits client.ListRoute[Hit] = "search"

var table = command.View(`
{{- row "SESSION" "SEQ" "REF" "KIND" "RANK" "TEXT"}}
{{- range .}}
{{row .Session .Seq .Ref (or .Kind "-") (printf "%.3f" .Rank) .Snippet}}
{{- end}}
`)

// commands are the commands of the search.
type commands struct {
	Search searchCommand `cmd:"" help:"Search the messages of all sessions for words, the best passages first."`
}

type searchCommand struct {
	Query string `arg:"" help:"Words; \"words in this order\", or, and -word for one that must not be there."`
	Limit int    `default:"20" help:"How many passages to list."`
}

// Run prints the passages.
func (c *searchCommand) Run(ctx context.Context, to *command.Console) error {
	return command.Find(ctx, to, table, hits, client.Query{"q": c.Query}, c.Limit)
}
