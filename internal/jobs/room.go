package jobs

import (
	"context"

	"golang.org/x/sync/semaphore"
)

// room lets jobs be beside each other in this process, or one be alone that may kill it. Whoever waits to be alone is
// before those that come later.
type room struct {
	size int64
	*semaphore.Weighted
}

func newRoom(size int) *room {
	return &room{size: int64(size), Weighted: semaphore.NewWeighted(int64(size))}
}

// enter waits for a place. The caller must call leave.
func (r *room) enter(ctx context.Context, alone bool) (leave func(), err error) {
	places := int64(1)
	if alone {
		places = r.size
	}
	if err := r.Acquire(ctx, places); err != nil {
		return nil, err
	}
	return func() { r.Release(places) }, nil
}
