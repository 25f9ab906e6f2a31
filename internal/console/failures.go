package console

import (
	"cmp"
	"slices"

	"github.com/varve-dev/varve/client"
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

// retried counts the sessions of a kind that are tried again.
type retried struct{ Again, Gone int }

func showFailures(v *visit) error {
	var page failuresPage
	found, next, err := list(v, client.ListFailures, client.Query{"limit": 100})
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

// retryFailures tries the sessions again that a form names. One that was compacted meanwhile has nothing to retry.
func retryFailures(v *visit) error {
	if err := v.r.ParseForm(); err != nil {
		return err
	}
	page := failuresPage{Retry: &retried{}}
	for _, id := range v.r.PostForm["session"] {
		_, err := client.RetryFailure.Call(v.ctx, v.api, id)
		switch {
		case is(err, "not_found"), is(err, "not_failing"):
			page.Retry.Gone++
		case err != nil:
			return err
		default:
			page.Retry.Again++
		}
	}
	found, next, err := list(v, client.ListFailures, client.Query{"limit": 100})
	if err != nil {
		return err
	}
	page.Kinds, page.Next = kindsOf(found), next
	return v.show("failures", "Failures", "failures.html", &page)
}
