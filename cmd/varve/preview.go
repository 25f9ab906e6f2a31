package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/varve-dev/varve/internal/client"
	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/terminal"
)

type previewCommand struct {
	Session string `arg:"" help:"Session id."`
	Policy  string `xor:"policy" help:"A policy, or changes to the session's: JSON, or a file of it (- is standard input). Without one, the session's policy."`
	Profile string `xor:"policy" help:"A profile for the policy: default, tool-compaction, cortex, falai, llm-proxy or codelia."`
	From    string `enum:",checkpoint,log" default:"" help:"Where to start, checkpoint or log. Without it, where a run would."`
	All     bool   `help:"Every part, also those that stay, with the reason why."`
}

// maxParts is how many parts are printed, those that save the most.
const maxParts = 25

// Run prints what a compaction of the session would do. Nothing is written.
func (c *previewCommand) Run(ctx context.Context, api *client.Client, settings *config.Client, out io.Writer) error {
	plan, err := c.preview(ctx, api)
	if err != nil {
		return err
	}
	limit := maxParts
	if c.All {
		limit = len(plan.Value.Actions)
	}
	return writeAnswer(out, settings.JSON, plan, func(out io.Writer, p *protocol.Preview) error {
		return writePlan(out, p, c.Session, limit, terminal.Width(os.Stdout, 100))
	})
}

func (c *previewCommand) preview(ctx context.Context, api *client.Client) (plan client.Answer[protocol.Preview], err error) {
	request := protocol.PreviewRequest{From: c.From}
	if request.Policy, err = policyOrProfile(c.Policy, c.Profile); err != nil {
		return plan, err
	}
	return api.Preview(ctx, c.Session, request, c.All)
}

// policyOrProfile reads the values of --policy and --profile, of which one at most is given. It returns nil for none.
func policyOrProfile(policy, profile string) (json.RawMessage, error) {
	if profile != "" {
		return fmt.Appendf(nil, `{"profile":%q}`, profile), nil
	}
	return readPolicy(policy)
}
