// Package webhook is a feature: a tenant's events are sent to the URLs that it has named.
//
// Start at Feature. http.go has the routes, store.go what they store, job.go the job that sends what a webhook has not
// got, deliveries.go its SQL, and send.go one request. Its tables are webhooks, webhook_secrets, webhook_turns, where a
// row of each webhook says when it is looked after, and webhook_deliveries, the events that it has not got.
package webhook

import (
	_ "embed"
	"net/http"
	"time"

	"github.com/varve-dev/varve/internal/feature"
	"github.com/varve-dev/varve/internal/postgres"
)

//go:embed openapi.yaml
var description []byte

//go:embed examples.txt
var examples string

// requestTimeout bounds one request to a webhook, with its answer.
const requestTimeout = 10 * time.Second

// Feature returns what the processes run of webhooks.
func Feature() feature.Feature { return waiting(requestTimeout) }

// waiting returns the feature with another bound for a request.
func waiting(limit time.Duration) feature.Feature {
	return feature.Feature{
		Description: description,
		Routes:      routes,
		Command:     &commands{},
		Examples:    examples,
		Jobs:        jobs(limit),
		Prunings:    []postgres.Pruning{dropDeliveries, dropUnwritten},
		Errors: []feature.Error{
			{Is: errTooMany, Code: "too_many_webhooks", Status: http.StatusUnprocessableEntity},
			{
				Is: errDisabled, Code: "webhook_disabled", Status: http.StatusConflict,
				Detail: "the webhook is disabled: POST /v1/webhooks/{id}/enable enables it",
			},
		},
	}
}
