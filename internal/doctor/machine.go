package doctor

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"syscall"

	"github.com/dustin/go-humanize"

	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/llm"
)

// disks looks at the disks that Varve itself writes to. That of another database its own monitoring watches.
func disks(at Installation) (found []Finding) {
	var places []string
	if at.Private {
		places = append(places, at.Data, os.TempDir())
	}
	if chosen, err := at.Database.Results.Stores(); err == nil {
		for _, store := range chosen.Outside {
			if store.Dir != "" {
				places = append(places, store.Dir)
			}
		}
	}
	for _, dir := range places {
		found = append(found, disk(dir))
	}
	return found
}

func disk(dir string) Finding {
	var state syscall.Statfs_t
	if err := syscall.Statfs(dir, &state); err != nil {
		return failed("disk", &os.PathError{Op: "statfs", Path: dir, Err: err}, "make the directory, or name another")
	}
	return diskFinding(dir, state.Bavail*uint64(state.Bsize), state.Blocks*uint64(state.Bsize))
}

// What must be free on a disk.
const (
	diskTight = 1 << 30
	diskFull  = 100 << 20
)

func diskFinding(dir string, free, size uint64) Finding {
	text := fmt.Sprintf("%s has %s free of %s", filepath.Clean(dir), humanize.IBytes(free), humanize.IBytes(size))
	switch {
	case free < diskFull:
		return Finding{"disk", Failed, text, "make room, or a larger disk"}
	case free < diskTight || free < size/20:
		return Finding{"disk", Warning, text, "make room, or a larger disk"}
	}
	return Finding{"disk", OK, text, ""}
}

// authorities looks at whether there are any by which servers prove who they are.
func authorities() Finding {
	const subject = "certificates"
	pool, err := x509.SystemCertPool()
	if err == nil && !pool.Equal(x509.NewCertPool()) {
		return Finding{subject, OK, "the system has authorities", ""}
	}
	return Finding{subject, Warning, "the system has no authorities: no server can be reached over TLS",
		"install the package ca-certificates, or set SSL_CERT_FILE"}
}

// models asks the providers of language models for their lists, which costs nothing.
func models(ctx context.Context, settings config.LLM) (found []Finding) {
	const subject = "models"
	configured, err := settings.Models()
	if err != nil || len(configured.Providers) == 0 {
		text := "none is configured: summaries are extracts"
		if err != nil {
			text = "the settings are not valid"
		}
		return []Finding{{subject, Skipped, text, ""}}
	}
	for _, name := range configured.ProviderNames() {
		found = append(found, provider(ctx, name, configured.Providers[name]))
	}
	return found
}

func provider(ctx context.Context, name string, p llm.Provider) Finding {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := llm.Reach(ctx, name, p)
	switch {
	case errors.Is(err, llm.ErrRejected):
		return failed("models", err, "look at its address and key: varve config shows where they come from")
	case err != nil:
		return Finding{"models", Warning, err.Error(), "summaries are extracts until it answers"}
	}
	return Finding{"models", OK, name + " answers at " + p.BaseURL, ""}
}

// api asks an API process whether it is ready.
func api(ctx context.Context, at Installation) Finding {
	const subject = "api"
	if at.API == "" {
		return Finding{subject, Skipped, "no address is known", "set VARVE_URL"}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := Ready(ctx, at.API)
	switch {
	case err == nil:
		return Finding{subject, OK, at.API + " is ready", ""}
	case !at.Named && errors.Is(err, syscall.ECONNREFUSED):
		return Finding{subject, Skipped, "no varve up runs on " + at.Data + " now", "set VARVE_URL"}
	}
	return failed(subject, err, "look whether varve api runs there, and what its log says")
}

// answered is how much of an answer of /readyz is shown.
const answered = 500

// Ready asks a process at its address whether it is ready, and returns what it says if it is not.
func Ready(ctx context.Context, url string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/readyz", nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusOK {
		return nil
	}
	said, err := io.ReadAll(io.LimitReader(response.Body, answered))
	return fmt.Errorf("%s is not ready: %s", url, cmp.Or(string(said), fmt.Sprint(err)))
}
