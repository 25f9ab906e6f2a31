package queue

import (
	"context"
	"log/slog"
	"net/http"

	"riverqueue.com/riverui"
)

// Pages returns River UI, whose addresses begin with a prefix. It counts jobs behind the scenes until ctx ends.
func (q *Queue) Pages(ctx context.Context, prefix string, log *slog.Logger) (http.Handler, error) {
	pages, err := riverui.NewHandler(&riverui.HandlerOpts{
		Endpoints: riverui.NewEndpoints(q.client, nil), Logger: log, Prefix: prefix,
	})
	if err != nil {
		return nil, err
	}
	return pages, pages.Start(ctx)
}
