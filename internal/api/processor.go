package api

import (
	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/ingest"
)

// takeProcessor waits for a processor for the work on a number of bytes. Nobody waits with light work. The caller
// releases it before the answer is written: a client who reads slowly holds none.
func (s *Server) takeProcessor(req *request.Request, bytes int64) (release func(), err error) {
	return s.CPU.Acquire(req.Ctx, req.Tenant, ingest.HeavyWork(bytes))
}
