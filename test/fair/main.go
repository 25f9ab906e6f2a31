// Command fair measures what one tenant's work does to another's: the time that the appends of a tenant take while
// nobody else works, and then under each attack by another tenant, or by somebody without a key. It exits with 1 if
// the 99th percentile under an attack is more than 3 times that of all idle seconds so far, of which some lie before
// each attack, or if a compaction waits behind too many of another tenant's. The idle seconds before one attack alone
// have a few hundred appends: their 99th percentile is that of the three slowest, and anything between 5 and 40 ms.
//
// It runs varve up on a directory of its own: the program that FAIR_VARVE names, or else one that it builds. The
// attackers are a process of their own, with the lowest priority: they stand for other machines. What all of them took
// of the processors is in the table, and what the rest of the machine took: figures from a busy machine say little.
//
// Start at main; attacks.go lists the attacks, routes.go makes one of every route that reads, dispatch.go measures the
// order of compactions. scripts/soak.sh runs it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// worst is how many times slower the victim's appends may be under an attack.
const worst = 3.0

var errUnfair = errors.New("one tenant holds the other up")

// options are what the command line sets.
type options struct {
	rounds int
	long   time.Duration
	only   string
}

func main() {
	if len(os.Args) == 5 && os.Args[1] == attackCommand {
		attackMain(os.Args[2], os.Args[3], os.Args[4])
		return
	}
	var o options
	flag.IntVar(&o.rounds, "rounds", 5, "how often each attack is measured; the medians count")
	flag.DurationVar(&o.long, "for", 5*time.Second, "how long the victim is measured, idle and under each attack")
	flag.StringVar(&o.only, "only", "", "measure only attacks whose names have this in them; /… only those routes")
	flag.Parse()
	if err := o.run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (o options) run() error {
	dir, err := os.MkdirTemp("", "fair-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if os.Getenv("FAIR_VARVE") == "" {
		program := filepath.Join(dir, "varve")
		if out, err := exec.Command("go", "build", "-o", program, "./cmd/varve").CombinedOutput(); err != nil {
			return fmt.Errorf("%w\n%s", err, out)
		}
		_ = os.Setenv("FAIR_VARVE", program) // the name is no empty one
	}
	s, err := start(dir)
	if err != nil {
		return err
	}
	defer s.stop()
	fmt.Printf("%-36s %15s %15s %13s  %-37s %s\n", "", "idle p50    p99", "under p50   p99", "ratio p50 p99",
		"% CPU: varve database attacker others", "the attacker's answers")
	var unfair error
	for i := range attacks {
		a := &attacks[i]
		if !strings.Contains(a.name, o.only) {
			continue
		}
		ratio, err := o.measure(s, a)
		if err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
		if ratio > worst {
			unfair = errUnfair
		}
	}
	if strings.Contains(requestedCompactions, o.only) {
		unfair = errors.Join(unfair, s.measureDispatch())
	}
	if strings.Contains(everyRoute, o.only) || strings.HasPrefix(o.only, "/") {
		unfair = errors.Join(unfair, o.measureRoutes(s))
	}
	return unfair
}

// times are percentiles of the victim's appends, in milliseconds.
type times struct{ p50, p99 float64 }

// round is one measurement, idle and then under an attack.
type round struct {
	under   times
	used    usage
	answers answers
	appends int
	failed  int
}

// measure prints a row of the table, and returns the ratio of the 99th percentiles.
func (o options) measure(s *server, a *attack) (ratio float64, err error) {
	if a.prepare != nil {
		release, err := a.prepare(s)
		if err != nil {
			return 0, err
		}
		defer release()
	}
	rounds := make([]round, o.rounds)
	for i := range rounds {
		if rounds[i], err = o.round(s, a); err != nil {
			return 0, err
		}
	}
	idle := percentiles(s.idle)
	under := times{
		median(rounds, func(r *round) float64 { return r.under.p50 }),
		median(rounds, func(r *round) float64 { return r.under.p99 }),
	}
	ratio = under.p99 / idle.p99
	last := rounds[len(rounds)-1]
	fmt.Printf("%-36s %7.1f %7.1f %7.1f %7.1f %6.1f %6.1f  ", a.name, idle.p50, idle.p99, under.p50, under.p99,
		under.p50/idle.p50, ratio)
	fmt.Printf("%12.0f %8.0f %8.0f %6.0f  %v; of %d appends %d failed\n", last.used.varve, last.used.database,
		last.used.attacker, last.used.others, last.answers, last.appends, last.failed)
	return ratio, nil
}

func median(rounds []round, of func(*round) float64) float64 {
	values := make([]float64, len(rounds))
	for i := range rounds {
		values[i] = of(&rounds[i])
	}
	slices.Sort(values)
	return values[len(values)/2]
}

func (o options) round(s *server, a *attack) (r round, err error) {
	time.Sleep(pause)
	idle, _ := s.appends(o.long)
	s.idle = append(s.idle, idle...)
	attackers, err := s.attack(a.name)
	if err != nil {
		return r, err
	}
	time.Sleep(time.Second)
	before := s.usage(attackers.pid())
	under, failed := s.appends(o.long)
	r.used = s.usage(attackers.pid()).since(before)
	r.under = percentiles(under)
	r.appends, r.failed = len(under), failed
	r.answers, err = attackers.end()
	return r, err
}

// pause is how long is waited between two measurements.
const pause = 2 * time.Second

func percentiles(took []time.Duration) times {
	slices.Sort(took)
	at := func(percent int) float64 { return float64(took[len(took)*percent/100].Microseconds()) / 1000 }
	return times{at(50), at(99)}
}
