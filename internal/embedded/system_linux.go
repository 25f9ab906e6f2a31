package embedded

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// endWithParent has the kernel ask PostgreSQL for a fast shutdown when the thread that started it ends.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGINT }

// commandLines returns the title of every process that has one; a dead process that nobody waited for has none.
func commandLines() (map[int]string, error) {
	names, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil, err
	}
	lines := map[int]string{}
	for _, name := range names {
		text, err := os.ReadFile(name) // fails for a process that has ended meanwhile
		pid, notPID := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err == nil && notPID == nil && len(text) > 0 {
			lines[pid] = strings.ReplaceAll(string(text), "\x00", " ")
		}
	}
	return lines, nil
}
