//go:build unix && !linux

package embedded

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// endWithParent does nothing: this system has no signal at a parent's death. The next Start stops what was left.
func endWithParent(*syscall.SysProcAttr) {}

// commandLines returns the title of every process.
func commandLines() (map[int]string, error) {
	out, err := exec.Command("ps", "-axww", "-o", "pid=,command=").Output()
	if err != nil {
		return nil, err
	}
	lines := map[int]string{}
	for line := range strings.Lines(string(out)) {
		number, title, _ := strings.Cut(strings.TrimSpace(line), " ")
		if pid, err := strconv.Atoi(number); err == nil {
			lines[pid] = strings.TrimSpace(title)
		}
	}
	return lines, nil
}
