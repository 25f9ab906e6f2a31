package console

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// failuresPage lists the sessions whose compaction fails, by what has failed.
type failuresPage struct {
	Kinds []failureKind
	Next  string
	Retry *retried // what a retry has come to, nil before one
}

// failureKind is the sessions of a page that fail alike.
type failureKind struct {
	Error       string
	Sessions    []session.Failing
	Quarantined int
}

// ID names the kind in a form, where a browser and a page may write the error otherwise.
func (k failureKind) ID() string { return kindID(k.Error) }

func kindID(err string) string {
	sum := sha256.Sum256([]byte(err))
	return hex.EncodeToString(sum[:8])
}

// retried counts the sessions that are tried again.
type retried struct {
	Again, Gone int
	Kind, Next  string // where more failures of the kind may be; "" for nowhere
}

const (
	failuresPageSize = 100

	// retriedPages is how many pages of failures one request looks through for those of a kind.
	retriedPages = 5
)

func showFailures(v *visit) error { return v.failures(nil) }

func (v *visit) failures(tried *retried) error {
	page := failuresPage{Retry: tried}
	found, next, err := list(v, client.ListFailures, client.Query{"limit": failuresPageSize})
	if err != nil {
		return err
	}
	page.Kinds, page.Next = kindsOf(found), next
	return v.show("failures", "Failures", "failures.html", &page)
}

// kindsOf groups failures by their error, the kind with the most sessions first.
func kindsOf(found []session.Failing) (kinds []failureKind) {
	for _, f := range found {
		i := slices.IndexFunc(kinds, func(k failureKind) bool { return k.Error == f.Error })
		if i < 0 {
			i = len(kinds)
			kinds = append(kinds, failureKind{Error: f.Error})
		}
		kinds[i].Sessions = append(kinds[i].Sessions, f)
		if f.QuarantinedAt != nil {
			kinds[i].Quarantined++
		}
	}
	slices.SortStableFunc(kinds, func(a, b failureKind) int { return cmp.Compare(len(b.Sessions), len(a.Sessions)) })
	return kinds
}

// retryFailures tries the sessions again that a form names, or all of a kind.
func retryFailures(v *visit) error {
	if err := v.r.ParseForm(); err != nil {
		return err
	}
	tried := &retried{Kind: v.r.PostForm.Get("kind")}
	if tried.Kind != "" {
		if err := v.retryKind(tried, v.r.PostForm.Get("from")); err != nil {
			return err
		}
	}
	for _, id := range v.r.PostForm["session"] {
		if err := v.retry(tried, id); err != nil {
			return err
		}
	}
	return v.failures(tried)
}

// retryKind looks for failures of a kind on pages of the list from a cursor on.
func (v *visit) retryKind(tried *retried, from string) error {
	for range retriedPages {
		q := client.Query{"limit": failuresPageSize, "cursor": from}
		read, err := client.Route[protocol.List[session.Failing]]("GET "+client.ListFailures).
			With(v.ctx, v.api, client.Options{Query: q})
		if err != nil {
			return err
		}
		for _, f := range read.Value.Data {
			if kindID(f.Error) != tried.Kind {
				continue
			}
			if err := v.retry(tried, f.Session); err != nil {
				return err
			}
		}
		if read.Value.NextCursor == nil {
			tried.Next = ""
			return nil
		}
		from = *read.Value.NextCursor
		tried.Next = from
	}
	return nil
}

// retry tries a session again. One that was compacted meanwhile has nothing to retry.
func (v *visit) retry(tried *retried, id string) error {
	_, err := client.RetryFailure.Call(v.ctx, v.api, id)
	switch {
	case is(err, "not_found"), is(err, "not_failing"):
		tried.Gone++
	case err != nil:
		return err
	default:
		tried.Again++
	}
	return nil
}
