package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/command"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/terminal"
)

type tokensCommand struct {
	Create tokensCreateCommand `cmd:"" help:"Make a token for one session and print it, once."`
	List   tokensListCommand   `cmd:"" help:"List a session's tokens."`
	Revoke tokensRevokeCommand `cmd:"" help:"Revoke a token."`
}

type tokensCreateCommand struct {
	Session string        `arg:"" help:"Session id."`
	Name    string        `help:"What the token is for."`
	Expires time.Duration `default:"1h" help:"How long it is valid, at most 24h."`
	Compact bool          `help:"Allow the holder to request compactions, too."`
}

// Validate returns an error for a lifetime that no token may have.
func (c *tokensCreateCommand) Validate() error {
	if c.Expires < time.Second || c.Expires > session.MaxTokenLifetime {
		return fmt.Errorf("--expires is %s: it must be from 1s to %s", c.Expires, session.MaxTokenLifetime)
	}
	return nil
}

// Run prints the new token on standard output, alone.
func (c *tokensCreateCommand) Run(ctx context.Context, to *command.Console) error {
	wanted := protocol.TokenRequest{Name: c.Name, TTLSeconds: int(c.Expires.Seconds())}
	if c.Compact {
		wanted.Scopes = session.TokenScopes()
	}
	made, err := client.CreateToken.With(ctx, to.API, client.Options{Body: wanted}, c.Session)
	if err != nil {
		return err
	}
	if err := to.Print(named("new token"), made.Raw, &made.Value); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "token %s of session %s; it is not stored and will not be shown again\n",
		made.Value.ID, terminal.Printable(c.Session))
	return nil
}

type tokensListCommand struct {
	Session string `arg:"" help:"Session id."`
}

// Run prints the session's tokens, newest first.
func (c *tokensListCommand) Run(ctx context.Context, to *command.Console) error {
	return showList(ctx, to, "tokens", client.ListTokens, math.MaxInt, c.Session)
}

type tokensRevokeCommand struct {
	Session string    `arg:"" help:"Session id."`
	ID      uuid.UUID `arg:"" help:"The token's id, as tokens list shows it."`
}

// Run revokes the token.
func (c *tokensRevokeCommand) Run(ctx context.Context, to *command.Console) error {
	if err := client.RevokeToken.Call(ctx, to.API, c.Session, c.ID); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "revoked: it is refused from now on")
	return nil
}
