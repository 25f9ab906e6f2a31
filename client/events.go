package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"strings"
	"time"
)

// Events returns what happens behind the event of a number, for ever: a stream that ends is continued. Only an error of
// ctx and one of the server that does not go away by waiting end it.
func (c *Client) Events(ctx context.Context, after int64, query Query) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for {
			err := c.readEvents(ctx, &after, query, yield)
			switch {
			case errors.Is(err, errStopped):
				return
			case err == nil, err == io.EOF, ctx.Err() == nil && Passing(err):
				err = c.Sleep(ctx, betweenStreams)
			}
			if err != nil {
				yield(Event{}, err)
				return
			}
		}
	}
}

// betweenStreams keeps a server, or a proxy, that ends streams at once from being asked without a pause.
const betweenStreams = time.Second

var errStopped = errors.New("the loop over the events has ended")

// readEvents reads one stream until it ends, and moves after on.
func (c *Client) readEvents(ctx context.Context, after *int64, query Query, yield func(Event, error) bool) error {
	asked := Query{"after": *after}
	for name, value := range query {
		asked[name] = value
	}
	res, err := c.open(ctx, "GET events", Options{Query: asked, Accept: "text/event-stream"}, nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	lines := bufio.NewReader(&streamBody{res.Body, ctx, c.Base})
	for kind := ""; ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return err
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch {
		case name == "event":
			kind = value
		case name == "data" && kind == "stream.closed":
			return nil // the next request says why, if the key may not read any more
		case name == "data":
			var e Event
			if err := json.Unmarshal([]byte(value), &e); err != nil {
				return err
			}
			*after = e.N
			if !yield(e, nil) {
				return errStopped
			}
		}
	}
}
