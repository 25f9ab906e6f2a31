package process

import (
	"bytes"
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
)

// cgroupLimit returns the least limit of memory of the control groups that this process is in, of both versions, as the
// files of root say; math.MaxInt64 for none.
func cgroupLimit(root fs.FS) int64 {
	limit := int64(math.MaxInt64)
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	mounts, mountsErr := fs.ReadFile(root, "proc/self/mountinfo")
	if err != nil || mountsErr != nil {
		return limit
	}
	for line := range strings.Lines(string(groups)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3) // number, controllers, path
		if len(fields) < 3 {
			continue
		}
		switch {
		case fields[1] == "": // the second version
			limit = min(limit, limitAt(root, string(mounts), "cgroup2", fields[2], "memory.max"))
		case slices.Contains(strings.Split(fields[1], ","), "memory"):
			limit = min(limit, limitAt(root, string(mounts), "cgroup", fields[2], "memory.limit_in_bytes"))
		}
	}
	return limit
}

// limitAt returns the least limit of a group and of those above it. A container may see its own group alone, at the
// place where the groups are mounted.
func limitAt(root fs.FS, mounts, kind, group, file string) int64 {
	limit := int64(math.MaxInt64)
	top, mounted := mountOf(mounts, kind)
	if top == "" {
		return limit
	}
	below, isBelow := strings.CutPrefix(path.Clean(group), strings.TrimSuffix(mounted, "/"))
	if !isBelow {
		below = ""
	}
	for at := path.Join(top, below); ; at = path.Dir(at) {
		if text, err := fs.ReadFile(root, strings.TrimPrefix(path.Join(at, file), "/")); err == nil {
			n, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
			if err == nil && n > 0 { // not "max"
				limit = min(limit, n)
			}
		}
		if at == top || len(at) <= len(top) {
			return limit
		}
	}
}

// mountOf returns where groups that have the controller of memory are mounted, and which of them lies there.
func mountOf(mounts, kind string) (top, mounted string) {
	for line := range strings.Lines(mounts) {
		fields := strings.Fields(line)
		end := slices.Index(fields, "-") // behind it the kind, the source and the options
		if end < 5 || len(fields) < end+4 || fields[end+1] != kind {
			continue
		}
		options := strings.Split(fields[end+3], ",")
		if kind == "cgroup2" || slices.Contains(options, "memory") {
			return fields[4], fields[3]
		}
	}
	return "", ""
}

// machineMemory returns the memory of the machine, as the files of root say; math.MaxInt64 if they do not.
func machineMemory(root fs.FS) int64 {
	text, err := fs.ReadFile(root, "proc/meminfo")
	if err != nil {
		return math.MaxInt64
	}
	for line := range strings.Lines(string(text)) {
		value, isTotal := strings.CutPrefix(line, "MemTotal:")
		if fields := strings.Fields(value); isTotal && len(fields) == 2 {
			if kilobytes, err := strconv.ParseInt(fields[0], 10, 64); err == nil {
				return kilobytes << 10
			}
		}
	}
	return math.MaxInt64
}
