// Command api is the REST process: it serves the HTTP API on the database that DATABASE_URL names. Run as many as are
// needed; cmd/worker does the compactions. It is the same as varve api.
package main

import (
	"os"

	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/process"
)

func main() { os.Exit(config.Main("api", "Varve's REST process.", os.Args[1:], &process.APICommand{})) }
