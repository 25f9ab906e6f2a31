// Command worker is the job process: it runs the compactions that appends to cmd/api ask for, on the database that
// DATABASE_URL names. Run as many as are needed. It is the same as varve worker.
package main

import (
	"os"

	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/process"
)

func main() {
	os.Exit(config.Main("worker", "Varve's job process.", os.Args[1:], &process.WorkerCommand{}))
}
