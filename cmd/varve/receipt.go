package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/receipt"
	"github.com/varve-dev/varve/internal/verify"
)

// receipt prints what a receipt says, and what is left of what it says was erased.
func (c *verifyCommand) receipt(
	ctx context.Context, store *postgres.Store, settings *config.Client, out io.Writer,
) error {
	text, err := readReceipt(c.Receipt)
	if err != nil {
		return err
	}
	verifier := verify.Verifier{Store: store}
	said, left, err := verifier.Receipt(ctx, text)
	for _, wrong := range []error{receipt.ErrNone, receipt.ErrKey, receipt.ErrSignature} {
		if errors.Is(err, wrong) {
			return &failure{exitFindings, err.Error()}
		}
	}
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

// readReceipt reads a receipt from a file: its text, or an erasure as the API answers it.
func readReceipt(file string) (string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	content = bytes.TrimSpace(content)
	if !bytes.HasPrefix(content, []byte("{")) {
		return string(content), nil
	}
	var erasure struct{ Receipt string }
	if err := json.Unmarshal(content, &erasure); err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	return erasure.Receipt, nil
}
