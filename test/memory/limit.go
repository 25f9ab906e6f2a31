package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// confinement is the memory that a program may have: a cgroup of its own or, where none can be made, a limit of its
// addresses beside GOMEMLIMIT.
type confinement struct {
	limit  int64  // bytes
	cgroup string // its directory, "" for none
}

// goReserves is about how many bytes of addresses a Go program reserves and does not use.
const goReserves = 1 << 30

// confine makes a limit for the program of a name.
func confine(name string, limit int64) *confinement {
	c := &confinement{limit: limit}
	for _, parent := range ownCgroups() {
		dir := filepath.Join(parent, fmt.Sprintf("varve-memory-%d-%s", os.Getpid(), name))
		if os.Mkdir(dir, 0o755) != nil {
			continue
		}
		for _, file := range []string{"memory.max", "memory.limit_in_bytes"} {
			if os.WriteFile(filepath.Join(dir, file), []byte(strconv.FormatInt(limit, 10)), 0) == nil {
				c.cgroup = dir
				return c
			}
		}
		_ = os.Remove(dir) // it is empty, and bounds nothing
	}
	return c
}

// ownCgroups returns the directories in which a cgroup with a limit of memory might be made: that of this process and
// the one above it, in the first or the second version.
func ownCgroups() (dirs []string) {
	file, err := os.Open("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		fields := strings.SplitN(lines.Text(), ":", 3)
		if len(fields) < 3 {
			continue
		}
		for _, path := range []string{fields[2], filepath.Dir(fields[2])} {
			switch fields[1] {
			case "memory":
				dirs = append(dirs, filepath.Join("/sys/fs/cgroup/memory", path))
			case "":
				dirs = append(dirs, filepath.Join("/sys/fs/cgroup", path))
			}
		}
	}
	return dirs
}

// command returns a command that runs a program within the limit.
func (c *confinement) command(ctx context.Context, program string) *exec.Cmd {
	if c.cgroup != "" {
		return exec.CommandContext(ctx, "sh", "-c", `echo $$ > "$0" && exec "$1"`,
			filepath.Join(c.cgroup, "cgroup.procs"), program)
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", `ulimit -v "$0" && exec "$1"`,
		strconv.FormatInt((c.limit+goReserves)>>10, 10), program)
	cmd.Env = append(os.Environ(), "GOMEMLIMIT="+strconv.FormatInt(c.limit/10*9, 10))
	return cmd
}

// how returns the kind of limit in words.
func (c *confinement) how() string {
	if c.cgroup != "" {
		return "cgroup"
	}
	return "ulimit -v and GOMEMLIMIT"
}

// charged returns the most that the cgroup was charged, with pages of files that it read; 0 where nobody counts it.
func (c *confinement) charged() int64 {
	for _, file := range []string{"memory.peak", "memory.max_usage_in_bytes"} {
		text, err := os.ReadFile(filepath.Join(c.cgroup, file))
		if c.cgroup != "" && err == nil {
			n, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64) // the kernel writes numbers
			return n
		}
	}
	return 0
}

// remove removes the cgroup, in which no process is left.
func (c *confinement) remove() error {
	if c.cgroup == "" {
		return nil
	}
	return os.Remove(c.cgroup)
}

// peakMemory returns the most memory that a process has had at a time, and how much of it are pages of its program
// now, which every process of the program shares. Both are 0 if it is gone.
func peakMemory(pid int) (peak, program int64) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		fields := strings.Fields(value)
		switch {
		case name == "VmHWM" && len(fields) > 0:
			peak, _ = strconv.ParseInt(fields[0], 10, 64) // the kernel writes numbers
		case name == "RssFile" && len(fields) > 0:
			program, _ = strconv.ParseInt(fields[0], 10, 64)
		}
	}
	return peak << 10, program << 10
}
