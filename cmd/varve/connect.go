package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/varve-dev/varve/internal/client"
	"github.com/varve-dev/varve/internal/config"
)

// connect returns a client of the API at settings.URL, with its key or else the one in DATA/key.
func connect(settings *config.Client) (*client.Client, error) {
	base, err := url.Parse(settings.URL)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, &usageError{fmt.Sprintf("--url (VARVE_URL) is %q: it must be a URL like http://127.0.0.1:8080", settings.URL)}
	}
	key := settings.Key
	if key == "" {
		if key, err = readKey(filepath.Join(settings.Data, "key")); err != nil {
			return nil, err
		}
	}
	return client.New(base, key, os.Stderr), nil
}

func readKey(file string) (string, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return "", &keyError{file}
	}
	return strings.TrimSpace(string(text)), err
}
