package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// processorTick is the unit in which operating systems count processor time.
const processorTick = 0.01

// clock is the processor time of a program, which other programs on the machine disturb less than what a clock on the
// wall says.
type clock struct {
	of    string
	read  func() (seconds float64, err error) // 0 if it is not known
	rates []float64                           // calls a second of it, by round
}

// clocks returns those of what serves a site's calls. PostgreSQL serves both sides, by turns.
func (s *site) clocks() []*clock {
	c := s.newClient()
	return []*clock{
		{of: "the API's processor time", read: func() (float64, error) {
			return c.metric("process_cpu_seconds_total")
		}},
		{of: "PostgreSQL's processor time", read: func() (float64, error) {
			return childrenSeconds(parentOf(int(s.admin.PgConn().PID()))), nil
		}},
	}
}

// timed returns a sample that also notes what it costs by each of the clocks.
func timed(round sample, clocks []*clock) sample {
	return func(ctx context.Context, d time.Duration) (float64, error) {
		before := make([]float64, len(clocks))
		for i, c := range clocks {
			var err error
			if before[i], err = c.read(); err != nil {
				return 0, err
			}
		}
		start := time.Now()
		rate, err := round(ctx, d)
		calls := rate * time.Since(start).Seconds()
		if err != nil {
			return 0, err
		}
		for i, c := range clocks {
			after, err := c.read()
			if err != nil {
				return 0, err
			}
			if after > 0 {
				c.rates = append(c.rates, calls/max(after-before[i], processorTick))
			}
		}
		return rate, nil
	}
}

// parentOf returns the process that started another, 0 if the operating system is not Linux.
func parentOf(pid int) int {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(stat), ") ") // behind the program's name
	fields := strings.Fields(rest)
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(fields[1])
	return parent
}

// childrenSeconds returns the processor time of the living processes that another has started.
func childrenSeconds(parent int) (sum float64) {
	dirs, _ := filepath.Glob("/proc/[0-9]*") // its only error is a wrong pattern
	for _, dir := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		if parent == 0 || parentOf(pid) != parent {
			continue
		}
		schedule, err := os.ReadFile(filepath.Join(dir, "schedstat"))
		if err != nil {
			continue // it has ended
		}
		first, _, _ := strings.Cut(string(schedule), " ")
		nanoseconds, _ := strconv.ParseFloat(first, 64)
		sum += nanoseconds / 1e9
	}
	return sum
}
