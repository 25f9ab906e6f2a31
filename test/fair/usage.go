package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// usage is processor time in hundredths of a second, or, since another usage, in percent of one processor.
type usage struct {
	varve, database, attacker, others float64
	at                                time.Time
}

func (u usage) since(before usage) usage {
	seconds := u.at.Sub(before.at).Seconds()
	return usage{
		varve:    (u.varve - before.varve) / seconds,
		database: (u.database - before.database) / seconds,
		attacker: (u.attacker - before.attacker) / seconds,
		others:   (u.others - before.others) / seconds,
	}
}

// usage reads what Linux says: others is all that is neither the server, nor the attacker, nor this process. Elsewhere
// all is 0.
func (s *server) usage(attacker int) usage {
	u := usage{at: time.Now()}
	parents, took := s.processes()
	var own float64
	for pid, t := range took {
		switch {
		case pid == s.cmd.Process.Pid:
			u.varve += t
		case isBelow(parents, pid, s.cmd.Process.Pid):
			u.database += t
		case pid == attacker:
			u.attacker += t
		case pid == os.Getpid():
			own += t
		}
	}
	u.others = machine() - u.varve - u.database - u.attacker - own
	return u
}

// processes returns the parents of all processes, and the processor time that each has taken, that of its ended
// children included except for varve's own.
func (s *server) processes() (parents map[int]int, took map[int]float64) {
	parents, took = map[int]int{}, map[int]float64{}
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // a pattern without an error
	for _, file := range files {
		text, err := os.ReadFile(file)
		_, rest, ok := strings.Cut(string(text), ") ") // no program of ours has a ) in its name
		fields := strings.Fields(rest)
		if err != nil || !ok || len(fields) < 15 {
			continue // it has ended
		}
		pid := int(number(filepath.Base(filepath.Dir(file))))
		parents[pid] = int(number(fields[1]))
		took[pid] = number(fields[11]) + number(fields[12])
		if pid != s.cmd.Process.Pid {
			took[pid] += number(fields[13]) + number(fields[14])
		}
	}
	return parents, took
}

func number(text string) float64 {
	n, _ := strconv.ParseFloat(text, 64) // the kernel writes numbers
	return n
}

// isBelow reports whether a process is a descendant of another.
func isBelow(parents map[int]int, pid, other int) bool {
	for pid = parents[pid]; pid > 1; pid = parents[pid] {
		if pid == other {
			return true
		}
	}
	return false
}

// machine returns what all processors have worked: the first line of /proc/stat without its columns of idleness.
func machine() (busy float64) {
	text, _ := os.ReadFile("/proc/stat") // Linux only
	line, _, _ := strings.Cut(string(text), "\n")
	for i, field := range strings.Fields(line) {
		if i == 1 || i == 2 || i == 3 || i >= 6 && i <= 8 {
			busy += number(field)
		}
	}
	return busy
}
