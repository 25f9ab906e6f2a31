package postgres_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
)

// citusStep is something that the store is asked for, with the session that seedOnCitus inserts.
type citusStep struct {
	name string
	do   func(ctx context.Context, c *onCitus) error
}

// citusSteps returns what a run asks the store for. No step needs what another makes: that one may have failed.
func citusSteps() []citusStep {
	return append(stepsOfSessions(), append(stepsOfTenants(), append(stepsOfWorkers(), stepsOfEnds()...)...)...)
}

func stepsOfSessions() []citusStep {
	page := session.Page{Limit: 10}
	return []citusStep{
		{"append", func(ctx context.Context, c *onCitus) error {
			return second(c.store.Append(ctx, batch(c.at, message("hello", 10))))
		}},
		{"append with an Idempotency-Key, twice", func(ctx context.Context, c *onCitus) error {
			a := batch(c.at, message("hello", 10))
			a.Idempotency = &session.Idempotency{Route: "append", Key: uuid.NewString()}
			return errors.Join(second(c.store.Append(ctx, a)), second(c.store.Append(ctx, a)))
		}},
		{"append with a client id, twice", func(ctx context.Context, c *onCitus) error {
			m := message("hello", 10)
			m.ClientID = uuid.NewString()
			return errors.Join(second(c.store.Append(ctx, batch(c.at, m))), second(c.store.Append(ctx, batch(c.at, m))))
		}},
		{"append with a usage", func(ctx context.Context, c *onCitus) error {
			return second(c.store.Append(ctx, answered(c.at, 10, 100)))
		}},
		{"append at once", appendAtOnce},
		{"append that crosses the trigger", func(ctx context.Context, c *onCitus) error {
			return second(c.store.Append(ctx, batch(c.at, message("long", 100_000))))
		}},
		{"view", func(ctx context.Context, c *onCitus) error { return first(c.store.View(ctx, c.at, postgres.Version{})) }},
		{"read the log", func(ctx context.Context, c *onCitus) error {
			return second(c.store.Messages(ctx, c.at, postgres.Range{Limit: 10}))
		}},
		{"create a session", func(ctx context.Context, c *onCitus) error {
			at := session.Address{Tenant: c.at.Tenant, ID: uuid.NewString()}
			return second(c.store.Create(ctx, at, session.Change{WindowTokens: new(1000), Metadata: []byte(`{"a":"b"}`)}, nil))
		}},
		{"change a session", func(ctx context.Context, c *onCitus) error {
			return second(c.store.Update(ctx, c.at, session.Change{WindowTokens: new(90_000)}, nil))
		}},
		{"change its policy", func(ctx context.Context, c *onCitus) error {
			return second(c.store.Update(ctx, c.at, toOwn(3), nil))
		}},
		{"read a session", func(ctx context.Context, c *onCitus) error { return first(c.store.Session(ctx, c.at)) }},
		{"list sessions", func(ctx context.Context, c *onCitus) error {
			return first(c.store.Sessions(ctx, c.at.Tenant, page))
		}},
		{"find sessions", func(ctx context.Context, c *onCitus) error {
			return second(c.store.FindSessions(ctx, c.at.Tenant, session.Search{Metadata: []byte(`{"a":"b"}`)}, page))
		}},
		{"fork a session", func(ctx context.Context, c *onCitus) error {
			return second(c.store.Fork(ctx, session.Fork{From: c.at, ID: uuid.NewString()}))
		}},
		{"store a result", func(ctx context.Context, c *onCitus) error {
			sum := sha256.Sum256([]byte("x"))
			r := persist.Result{
				Ref: session.NewResultRef(1, 0, sum).String(), Seq: 1, Tool: "Read", CallID: "c", Category: "rereadable",
				MediaType: "text/plain; charset=utf-8", Bytes: 1, Lines: 1, Tokens: 2, SHA256: sum[:],
			}
			return first(c.store.PutResults(ctx, c.key, []persist.NewResult{{Body: []byte("x"), Result: r}}))
		}},
		{"ask for a compaction", func(ctx context.Context, c *onCitus) error {
			return second(c.store.Compact(ctx, c.at, nil))
		}},
		{"read what a compaction needs", func(ctx context.Context, c *onCitus) error {
			return first(c.store.Snapshot(ctx, c.key))
		}},
		{"commit a checkpoint", commitOnCitus},
		{"list checkpoints", func(ctx context.Context, c *onCitus) error {
			return first(c.store.Checkpoints(ctx, c.at, 0, 10))
		}},
		{"list runs", func(ctx context.Context, c *onCitus) error { return first(c.store.Runs(ctx, c.at, page)) }},
		{"remove a message", func(ctx context.Context, c *onCitus) error {
			return second(c.store.Remove(ctx, c.at, 1, nil))
		}},
	}
}

func stepsOfTenants() []citusStep {
	page := session.Page{Limit: 10}
	return []citusStep{
		{"create a tenant", func(ctx context.Context, c *onCitus) error {
			policy := session.Policy{Trigger: 0.8, Hard: 0.95, Document: []byte(`{}`)}
			return first(c.store.CreateTenant(ctx, uuid.NewString(), policy))
		}},
		{"change a tenant's policy", func(ctx context.Context, c *onCitus) error {
			return second(c.store.ChangeTenantPolicy(ctx, c.at.Tenant, toDefault(3)))
		}},
		{"make a key", func(ctx context.Context, c *onCitus) error {
			text := session.NewAPIKey(c.at.Tenant)
			return first(c.store.CreateKey(ctx, c.at.Tenant, session.NewKey{Text: text, Scopes: session.KeyScopes()}))
		}},
		{"note the use of a key", func(ctx context.Context, c *onCitus) error {
			return c.store.NoteUse(ctx, c.at.Tenant, uuid.New())
		}},
		{"recompact sessions", func(ctx context.Context, c *onCitus) error {
			all := session.Recompaction{Pace: session.Pace{MaxRunning: 3}}
			return second(c.store.CreateRecompaction(ctx, c.at.Tenant, all, nil))
		}},
		{"replay policies", func(ctx context.Context, c *onCitus) error {
			made, _, err := c.store.CreateReplay(ctx, c.at.Tenant, twoContenders(), nil)
			if err == nil {
				_, err = c.store.BeginReplay(ctx, c.at.Tenant, made.ID, 0.8)
			}
			return err
		}},
		{"import", importOnCitus},
		{"read events", func(ctx context.Context, c *onCitus) error {
			return first(c.store.Events(ctx, c.at.Tenant, postgres.EventFilter{Limit: 10}))
		}},
		{"set how long sessions are kept", func(ctx context.Context, c *onCitus) error {
			kept := session.Retention{IdleSeconds: new(session.MaxRetention)}
			return first(c.store.SetRetention(ctx, c.at.Tenant, kept))
		}},
		{"search", func(ctx context.Context, c *onCitus) error {
			return first(c.store.Search(ctx, c.at.Tenant, postgres.SearchPage{Query: "hello", Limit: 10}))
		}},
		{"read what is used", func(ctx context.Context, c *onCitus) error {
			now := time.Now()
			return first(c.store.UsageByDay(ctx, c.at.Tenant, now.AddDate(0, 0, -7), now))
		}},
		{"count what is used", func(ctx context.Context, c *onCitus) error {
			return c.store.CountUsage(ctx, c.at.Tenant, []session.Reading{{Session: c.at.ID, Views: 1, TokensServed: 10}})
		}},
		{"read the audit trail", func(ctx context.Context, c *onCitus) error {
			return first(c.store.Trail(ctx, c.at.Tenant, postgres.TrailFilter{Limit: 10}))
		}},
		{"read a tenant", func(ctx context.Context, c *onCitus) error { return first(c.store.Tenant(ctx, c.at.Tenant)) }},
		{"list tenants", func(ctx context.Context, c *onCitus) error { return first(c.store.TenantPage(ctx, page)) }},
		{"list the sessions of all tenants", func(ctx context.Context, c *onCitus) error {
			return second(c.store.Fleet(ctx, session.FleetTokens, nil, nil, 10))
		}},
	}
}

func stepsOfWorkers() []citusStep {
	return []citusStep{
		{"sweep", func(ctx context.Context, c *onCitus) error { return first(c.store.Sweep(ctx)) }},
		{"prune", func(ctx context.Context, c *onCitus) error { return c.store.Prune(ctx, c.at.Tenant) }},
		{"count what waits", func(ctx context.Context, c *onCitus) error { return first(c.store.Backlog(ctx)) }},
		{"list chores", func(ctx context.Context, c *onCitus) error {
			return first(c.store.Chores(ctx, postgres.ChorePolicy, 10))
		}},
		{"merge policies", func(ctx context.Context, c *onCitus) error {
			return first(c.store.MergePolicies(ctx, c.at.Tenant))
		}},
		{"verify sessions", func(ctx context.Context, c *onCitus) error { return first(c.store.AuditNext(ctx, 10, 10)) }},
		{"erase expired sessions", func(ctx context.Context, c *onCitus) error {
			return first(c.store.EraseExpired(ctx, c.at.Tenant))
		}},
	}
}

// stepsOfEnds end what the others work with.
func stepsOfEnds() []citusStep {
	return []citusStep{
		{"hold a session", func(ctx context.Context, c *onCitus) error {
			return errors.Join(first(c.store.HoldSession(ctx, c.at, "case 7")), c.store.ReleaseSession(ctx, c.at))
		}},
		{"erase a subject", func(ctx context.Context, c *onCitus) error {
			return second(c.store.EraseSubject(ctx, c.at.Tenant, json.RawMessage(`{"user":"7"}`), nil))
		}},
		{"delete a session", func(ctx context.Context, c *onCitus) error { return first(c.store.Delete(ctx, c.at, nil)) }},
		{"delete a tenant", func(ctx context.Context, c *onCitus) error {
			return first(c.store.DeleteTenant(ctx, c.at.Tenant))
		}},
	}
}

// appendAtOnce has several sessions of a tenant grow at once, which one statement may do.
func appendAtOnce(ctx context.Context, c *onCitus) error {
	errs := make([]error, 40)
	var wait sync.WaitGroup
	for i := range errs {
		at := c.others[i%len(c.others)]
		wait.Go(func() { errs[i] = second(c.store.Append(ctx, batch(at, message("hello", 10)))) })
	}
	wait.Wait()
	return errors.Join(errs...)
}

func commitOnCitus(ctx context.Context, c *onCitus) error {
	return c.store.CommitCheckpoint(ctx, c.key, postgres.Outcome{
		Run: session.Run{ID: uuid.Must(uuid.NewV7()), State: session.RunDone, Checkpoint: new(1)}, LastSeq: 1,
		Checkpoint: &postgres.Checkpoint{
			Through: 1, Tokens: 5, Body: []byte("x"), Size: 1, State: []byte("state"), Units: []byte(`[]`), Manifest: []byte(`[]`),
			Policy: []byte(`{}`), EngineVersion: 1,
		},
	}, noJob)
}

func importOnCitus(ctx context.Context, c *onCitus) error {
	begun, err := c.store.BeginImport(ctx, c.at.Tenant, "", "", "")
	if err != nil {
		return err
	}
	line := session.ImportLine{Outcome: session.LineChecked, Message: &session.ImportedMessage{
		Session: fmt.Sprint("imported ", begun.ID), Format: session.OpenAIChat, NewMessage: message("hello", 1),
	}}
	return c.store.StoreImportLines(ctx, c.at.Tenant, &begun, []session.ImportLine{line})
}

// first and second return the error behind one result or two.
func first[A any](_ A, err error) error { return err }

func second[A, B any](_ A, _ B, err error) error { return err }
