package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/verify"
)

// receipt prints what a receipt says, and what is left of what it says was erased.
func (c *verifyCommand) receipt(
	ctx context.Context, store *postgres.Store, settings *config.Client, out io.Writer,
) error {
	said, err := readReceipt(c.Receipt)
	if err != nil {
		return err
	}
	verifier := verify.Verifier{Store: store}
	left, err := verifier.Receipt(ctx, said)
	if err != nil {
		return err
	}
	if err := printValue(out, settings.JSON, "receipt", said); err != nil {
		return err
	}
	if len(left) > 0 {
		return &failure{exitFindings, fmt.Sprintf("not everything is gone: %s", strings.Join(left, ", "))}
	}
	return nil
}

// readReceipt reads a receipt from a file, or an erasure as the API answers it, which has one.
func readReceipt(file string) (*session.Receipt, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var erasure struct{ Receipt *session.Receipt }
	if err := json.Unmarshal(content, &erasure); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	said := erasure.Receipt
	if said == nil {
		said = new(session.Receipt)
		if err := json.Unmarshal(content, said); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	if said.Version != session.ReceiptVersion || said.ID == uuid.Nil {
		return nil, &failure{exitFindings, fmt.Sprintf("%s has no receipt of an erasure that has ended", file)}
	}
	return said, nil
}
