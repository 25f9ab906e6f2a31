package postgres

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"
)

// IsAway reports whether err means that the database could not be asked or could not answer now, and that the same
// may work later. A deadline is not among it: whose fault that is, only the caller knows.
func IsAway(err error) bool {
	var connect *pgconn.ConnectError
	var network *net.OpError
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &pg):
		return isTransient(pg.Code)
	case errors.As(err, &connect), errors.As(err, &network):
		return true
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return false
	case pgconn.SafeToRetry(err):
		return true
	}
	for _, lost := range []error{io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, puddle.ErrClosedPool} {
		if errors.Is(err, lost) {
			return true
		}
	}
	return false
}

// transient are the SQLSTATEs and classes of what passes: connection lost, deadlock or serialization, out of resources,
// stopping or starting or cancelled, I/O error, a password or role that is being changed, read-only, an idle
// transaction or a lock that took too long.
var transient = []string{"08", "40", "53", "57", "58", "28", "25006", "25P03", "55P03"}

func isTransient(state string) bool {
	for _, class := range transient {
		if strings.HasPrefix(state, class) {
			return true
		}
	}
	return false
}
