package process

import (
	"math"
	"os"
	"runtime/debug"
	"testing"
	"testing/fstest"

	"github.com/varve-dev/varve/internal/config"
)

// files returns a file system as Linux shows one.
func files(of map[string]string) fstest.MapFS {
	root := fstest.MapFS{}
	for name, text := range of {
		root[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return root
}

const (
	mountsOfV1 = "31 28 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n" +
		"32 28 0:28 / /sys/fs/cgroup/memory rw,nosuid - cgroup cgroup rw,memory\n"
	mountsOfV2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
)

func TestTheLimitOfACgroupIsFound(t *testing.T) {
	t.Parallel()
	const none = math.MaxInt64
	for name, test := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"the second version": {map[string]string{
			"proc/self/cgroup": "0::/pod/box\n", "proc/self/mountinfo": mountsOfV2,
			"sys/fs/cgroup/pod/box/memory.max": "1073741824\n", "sys/fs/cgroup/pod/memory.max": "max\n",
		}, 1 << 30},
		"a group above it has less": {map[string]string{
			"proc/self/cgroup": "0::/pod/box\n", "proc/self/mountinfo": mountsOfV2,
			"sys/fs/cgroup/pod/box/memory.max": "1073741824\n", "sys/fs/cgroup/pod/memory.max": "536870912\n",
		}, 512 << 20},
		"a container sees its own group alone": {map[string]string{
			"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": mountsOfV2, "sys/fs/cgroup/memory.max": "268435456\n",
		}, 256 << 20},
		"a container that is told the path outside": {map[string]string{
			"proc/self/cgroup":                           "4:memory:/docker/abc\n",
			"proc/self/mountinfo":                        "32 28 0:28 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "268435456\n",
		}, 256 << 20},
		"the first version": {map[string]string{
			"proc/self/cgroup": "9:cpu,cpuacct:/a\n8:memory:/a/b\n0::/\n", "proc/self/mountinfo": mountsOfV1,
			"sys/fs/cgroup/memory/a/b/memory.limit_in_bytes": "134217728\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":     "9223372036854771712\n",
		}, 128 << 20},
		"no limit": {map[string]string{
			"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": mountsOfV2, "sys/fs/cgroup/memory.max": "max\n",
		}, none},
		"no groups": {nil, none},
	} {
		if got := cgroupLimit(files(test.files)); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}

func TestTheMachinesMemoryIsALimit(t *testing.T) {
	t.Parallel()
	if got := machineMemory(files(map[string]string{"proc/meminfo": "MemTotal:       2048 kB\nMemFree: 1 kB\n"})); got != 2<<20 {
		t.Errorf("%d bytes", got)
	}
	if got := machineMemory(files(nil)); got != math.MaxInt64 {
		t.Errorf("without a file: %d bytes", got)
	}
}

func TestReservedAddressesLeaveLessMemory(t *testing.T) {
	t.Parallel()
	pages := func() (reserved, resident int64) { return 700 << 20, 60 << 20 }
	if got := addressesLeft(2<<30, pages); got != 2<<30-640<<20-64<<20 {
		t.Errorf("of 2 GiB: %d", got)
	}
	if got := addressesLeft(100<<20, pages); got != 1<<20 {
		t.Errorf("of too few: %d", got)
	}
	if reserved, resident := pagesNow(); reserved < resident || resident == 0 {
		t.Errorf("this process has %d bytes of addresses and %d of memory", reserved, resident)
	}
}

// The heap leaves room for the program, and a limit that somebody sets by hand stays.
func TestAMemoryLimitIsSetUnlessSomebodyHasSetOne(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before); limit.Store(0) })
	_ = os.Unsetenv("GOMEMLIMIT")
	LimitMemory(config.Memory{MemoryLimit: 1 << 30}, false)
	if got := debug.SetMemoryLimit(-1); got != ofHeap(1<<30) || limit.Load() != 1<<30 {
		t.Errorf("VARVE_MEMORY: the heap may have %d of %d", got, limit.Load())
	}
	LimitMemory(config.Memory{MemoryLimit: 3 << 30}, true)
	if limit.Load() != 2<<30 {
		t.Errorf("beside a database: %d", limit.Load())
	}
	t.Setenv("GOMEMLIMIT", "700MiB")
	debug.SetMemoryLimit(700 << 20)
	LimitMemory(config.Memory{MemoryLimit: 1 << 30}, false)
	if got := debug.SetMemoryLimit(-1); got != 700<<20 {
		t.Errorf("GOMEMLIMIT was 700 MiB, and is %d", got)
	}
	if got := foundLimit(files(map[string]string{"proc/meminfo": "MemTotal: 4194304 kB\n"})); got > 700<<20 {
		t.Errorf("with GOMEMLIMIT of 700 MiB and 4 GiB: %d", got)
	}
	for _, bound := range []int64{64 << 20, 128 << 20, 1 << 30, 64 << 30} {
		if heap := ofHeap(bound); heap < bound/2 || heap > bound-bound/10 || ofWork(bound) <= 0 || ofWork(bound) > heap {
			t.Errorf("of %d: heap %d, work %d", bound, heap, ofWork(bound))
		}
	}
}
