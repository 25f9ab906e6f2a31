package console

import (
	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/protocol"
)

// list reads the page of a list that a request names.
func list[T any](v *visit, route client.ListRoute[T], q client.Query, args ...any) ([]T, string, error) {
	asked := v.r.URL.Query()
	if q == nil {
		q = client.Query{}
	}
	q["cursor"] = asked.Get("cursor")
	read, err := client.Route[protocol.List[T]]("GET "+route).With(v.ctx, v.api, client.Options{Query: q}, args...)
	return read.Value.Data, nextPage(asked, read.Value.NextCursor), err
}
