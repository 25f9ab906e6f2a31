package process

import (
	"cmp"
	"io/fs"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/config"
)

// patience is how long a request or a job waits for memory or a processor.
const patience = 10 * time.Second

// privateDatabase is the part of the memory that varve up leaves to the PostgreSQL that it runs, at most and as a part
// of the whole: its shared buffers, and what its backends need.
const (
	privateDatabase     = 1 << 30
	privateDatabasePart = 3
)

var memoryLimit = promauto.NewGauge(prometheus.GaugeOpts{
	Name: "varve_memory_limit_bytes", Help: "The memory that this process keeps within.",
})

// limit is the memory of this process in bytes, as LimitMemory found it; 0 before.
var limit atomic.Int64

// LimitMemory bounds the memory of this process: by the setting, or else by the least of GOMEMLIMIT, its cgroup, its
// address space (RLIMIT_AS) and the machine's memory. A process with a PostgreSQL of its own leaves it a part. Call it
// before API and Worker: without it they look for a limit by themselves.
func LimitMemory(settings config.Memory, private bool) {
	bound := cmp.Or(int64(settings.MemoryLimit), foundLimit(os.DirFS("/")))
	if private {
		bound -= min(privateDatabase, bound/privateDatabasePart)
	}
	limit.Store(bound)
	memoryLimit.Set(float64(bound))
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(ofHeap(bound))
	}
}

// ofHeap returns the part of a limit that Go's heap and stacks may have: the rest is the program itself, and what the
// collector is late by.
func ofHeap(bound int64) int64 {
	const program = 48 << 20
	return bound - max(bound/10, min(program, bound/3))
}

// foundLimit returns the memory that the process has by its surroundings, which the files of root tell.
func foundLimit(root fs.FS) int64 {
	bound := min(debug.SetMemoryLimit(-1), cgroupLimit(root), machineMemory(root)) // GOMEMLIMIT, or else no limit
	return min(bound, addressSpace(bound))
}

// addressSpace returns how much memory the limit of the address space leaves, fallback if there is none. Go reserves
// addresses that it does not use: those do not count.
func addressSpace(fallback int64) int64 {
	var found syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_AS, &found); err != nil || found.Cur > uint64(fallback) {
		return fallback
	}
	return addressesLeft(int64(found.Cur), pagesNow)
}

// addressesLeft returns how much memory a limit of addresses leaves, of which some are reserved and not used.
func addressesLeft(addresses int64, pages func() (reserved, resident int64)) int64 {
	const spare = 64 << 20 // for what is reserved later
	reserved, resident := pages()
	return max(addresses-(reserved-resident)-spare, 1<<20)
}

// pagesNow returns the sizes in bytes of the process's address space and of what of it is in memory; 0 where the
// system does not say.
func pagesNow() (reserved, resident int64) {
	text, err := os.ReadFile("/proc/self/statm")
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 2 {
		return 0, 0
	}
	page := int64(os.Getpagesize())
	reserved, _ = strconv.ParseInt(fields[0], 10, 64) // the kernel writes numbers
	resident, _ = strconv.ParseInt(fields[1], 10, 64)
	return reserved * page, resident * page
}

// shares are what the work of this process draws from.
type shares struct{ memory, cpu *admit.Gate }

// shared returns the process's shares, the same ones for API and Worker.
var shared = sync.OnceValue(func() shares {
	if limit.Load() == 0 {
		LimitMemory(config.Memory{}, false)
	}
	return shares{
		memory: gateOf("memory", ofWork(limit.Load())),
		cpu:    gateOf("cpu", int64(max(1, runtime.GOMAXPROCS(0)-1))),
	}
})

// gateOf returns a gate of which a tenant holds three quarters at most.
func gateOf(name string, size int64) *admit.Gate {
	return admit.New(admit.Config{Name: name, Size: size, Each: max(1, size-size/4), Patience: patience})
}

// ofWork returns the part of a limit for what is weighed: without what the process needs itself, what is too small to
// be weighed, and the garbage between two collections.
func ofWork(bound int64) int64 {
	const idle = 64 << 20
	heap := ofHeap(bound)
	return (heap - min(idle, heap/3)) / 4 * 3
}
