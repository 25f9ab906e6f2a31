package jobs_test

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/varve-dev/varve/internal/erasure"
	"github.com/varve-dev/varve/internal/jobs"
	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tier"
	"github.com/varve-dev/varve/internal/verify"
)

var archiveSeed = flag.Uint64("archive.seed", 16, "of the histories of TestASessionIsArchivedAndBackWhateverItsWorkerDoes")

// told is a session of a random history, and what was read of it before it was archived.
type told struct {
	session.Address
	log    [][]byte
	served string
	rows   []string
	away   bool // it is archived
}

// archiveHistory is a random history of sessions that are archived and restored by hand.
type archiveHistory struct {
	*world
	random   *rand.Rand
	sessions []*told
	made     int
	restored int // sessions that were compared
}

type chance struct {
	name string
	do   func(*told)
}

// archiveSteps are where a worker of archives fails.
var archiveSteps = []string{
	"archive begun", "part added", "archive checked", "session archived", "objects forgotten", "part restored", "session restored",
}

// TestASessionIsArchivedAndBackWhateverItsWorkerDoes plays random histories in each store, in which workers fail at every
// step of an archive, and compares what is read, and the rows, with what they were before each archive.
func TestASessionIsArchivedAndBackWhateverItsWorkerDoes(t *testing.T) {
	t.Parallel()
	kinds := []persist.Kind{persist.Postgres, persist.File, persist.S3}
	if testing.Short() {
		kinds = kinds[:1] // that of cold sessions has the other
	}
	inStores(t, kinds, func(t *testing.T, w *world, kind persist.Kind) {
		came := w.stumbling(archiveSteps...)
		h := &archiveHistory{world: w, random: rand.New(rand.NewPCG(*archiveSeed, uint64(len(kind.String()))))}
		h.begin()
		h.begin()
		chances := []chance{
			{"append", h.append}, {"append", h.append}, {"compact", h.compact}, {"compact", h.compact}, {"fork", h.fork},
			{"fork", h.fork}, {"archive", h.archive}, {"archive", h.archive}, {"restore", h.restore}, {"restore", h.restore},
			{"change one's mind", h.changeOnesMind}, {"insist", h.insist}, {"hold hot", h.holdHot},
			{"hold meanwhile", h.holdMeanwhile}, {"hold archived", h.holdArchived}, {"erase", h.erase}, {"erase", h.erase},
		}
		h.random.Shuffle(len(chances), func(i, j int) { chances[i], chances[j] = chances[j], chances[i] })
		for _, d := range chances {
			if len(h.sessions) == 0 {
				h.begin()
			}
			s := h.sessions[h.random.IntN(len(h.sessions))]
			t.Log(d.name, s.ID)
			d.do(s)
		}
		w.verified()
		for _, s := range h.sessions {
			h.restore(s)
			w.whole(s.Address, s.log)
		}
		w.verified()
		for len(h.sessions) > 0 {
			h.erase(h.sessions[0])
		}
		w.noObjectIsLeft()
		for _, step := range archiveSteps {
			if came(step) < 2 {
				t.Errorf("a worker came to %q %d times", step, came(step))
			}
		}
		t.Logf("%d sessions, %d compared", h.made, h.restored)
	})
}

// begin makes a session.
func (h *archiveHistory) begin() {
	h.made++
	s := &told{Address: h.session(fmt.Sprint("s", h.made)), log: turns(20, 1500)}
	h.appendLog(s.Address, session.OpenAIChat, s.log)
	h.sessions = append(h.sessions, s)
}

// hot brings a session back if it is archived, and compares it.
func (h *archiveHistory) hot(s *told) {
	h.Helper()
	if s.away {
		h.restore(s)
	}
}

// ask asks for an archive of a session, and keeps what the session is.
func (h *archiveHistory) ask(s *told) {
	h.Helper()
	h.hot(s)
	h.offloaded()
	s.served, s.rows = h.served(s.Address), h.allRows(s.Address)
	if _, _, err := tier.Archive(h.Context(), h.store, s.Address, nil); err != nil {
		h.Fatal(err)
	}
	s.away = true
}

func (h *archiveHistory) archive(s *told) {
	h.Helper()
	if !s.away {
		h.ask(s)
		h.archiveIn(s.Address, session.Archived)
	}
	if err := h.tryToAppend(s); !errors.Is(err, session.ErrNotFound) && !errors.Is(err, session.ErrArchived) {
		h.Errorf("%s is archived, and takes messages: %v", s.ID, err)
	}
}

func (h *archiveHistory) tryToAppend(s *told) error {
	m := session.NewMessage{Body: []byte(`{"role":"user","content":"?"}`), Role: "user", Tokens: 1, StartsUnit: true}
	_, _, err := h.store.Append(h.Context(), session.Append{
		Session: s.Address, Format: session.OpenAIChat, Messages: []session.NewMessage{m},
	})
	return err
}

func (h *archiveHistory) restore(s *told) {
	h.Helper()
	if !s.away {
		h.archive(s)
	}
	h.world.restored(s.Address)
	h.compare(s)
}

// compare holds a session that is back to what it was.
func (h *archiveHistory) compare(s *told) {
	h.Helper()
	h.back(s.Address)
	h.restored++
	s.away = false
	h.sameRows(s.ID, s.rows, h.allRows(s.Address))
	if got := h.served(s.Address); got != s.served {
		h.Fatalf("%s was %s, and is %s", s.ID, s.served, got)
	}
}

func (h *archiveHistory) append(s *told) {
	h.Helper()
	h.hot(s)
	more := turn(100+len(s.log), 1500)
	s.log = append(s.log, more...)
	h.appendLog(s.Address, session.OpenAIChat, more)
}

func (h *archiveHistory) compact(s *told) {
	h.Helper()
	h.hot(s)
	if _, _, err := h.store.Compact(h.Context(), s.Address, nil); err != nil {
		h.Fatal(err)
	}
}

func (h *archiveHistory) fork(s *told) {
	h.Helper()
	h.hot(s)
	h.made++
	seq := 2 * (1 + h.random.IntN(len(s.log)/2))
	fork := h.world.fork(s.Address, fmt.Sprint("fork", h.made), int64(seq))
	h.sessions = append(h.sessions, &told{Address: fork, log: slices.Clone(s.log[:seq])})
}

// changeOnesMind asks for an archive, and at once for the session.
func (h *archiveHistory) changeOnesMind(s *told) {
	h.Helper()
	h.ask(s)
	h.restore(s)
}

// insist asks for a session, and at once for its archive.
func (h *archiveHistory) insist(s *told) {
	h.Helper()
	h.archive(s)
	if _, _, err := tier.Unarchive(h.Context(), h.store, s.Address, nil); err != nil {
		h.Fatal(err)
	}
	_, _, err := tier.Archive(h.Context(), h.store, s.Address, nil)
	if err == nil { // it is back already
		h.archiveIn(s.Address, session.Archived)
		return
	}
	if !errors.Is(err, session.ErrRestoring) {
		h.Fatal(err)
	}
	h.compare(s)
}

func (h *archiveHistory) hold(s *told) (release func()) {
	h.Helper()
	if _, err := erasure.HoldSession(h.Context(), h.store, s.Address, "a case"); err != nil {
		h.Fatal(err)
	}
	if _, err := h.store.Delete(h.Context(), s.Address, nil); !errors.Is(err, session.ErrHeld) {
		h.Errorf("%s is held, and erased: %v", s.ID, err)
	}
	return func() {
		if err := erasure.ReleaseSession(h.Context(), h.store, s.Address); err != nil {
			h.Fatal(err)
		}
	}
}

func (h *archiveHistory) holdHot(s *told) {
	h.Helper()
	h.hot(s)
	defer h.hold(s)()
	if _, _, err := tier.Archive(h.Context(), h.store, s.Address, nil); !errors.Is(err, session.ErrHeld) {
		h.Errorf("%s is held, and archived: %v", s.ID, err)
	}
}

// holdMeanwhile holds a session while it is archived: it is back, or was archived before.
func (h *archiveHistory) holdMeanwhile(s *told) {
	h.Helper()
	h.ask(s)
	release := h.hold(s)
	h.drained("session_archives WHERE state = 'archiving'")
	_, err := tier.ArchiveOf(h.Context(), h.store, s.Address)
	release()
	if errors.Is(err, session.ErrNotFound) {
		h.compare(s)
	} else if err != nil {
		h.Fatal(err)
	}
}

func (h *archiveHistory) holdArchived(s *told) {
	h.Helper()
	h.archive(s)
	release := h.hold(s)
	h.world.restored(s.Address)
	release()
	h.compare(s)
}

// erase erases a session, at times while it is archived or restored, and requires that nothing of it stays.
func (h *archiveHistory) erase(s *told) {
	h.Helper()
	switch h.random.IntN(4) {
	case 0:
		h.ask(s)
	case 1:
		h.archive(s)
		if _, _, err := tier.Unarchive(h.Context(), h.store, s.Address, nil); err != nil {
			h.Fatal(err)
		}
	}
	done, err := h.store.Delete(h.Context(), s.Address, nil)
	if err != nil {
		h.Fatal(err)
	}
	found, _ := h.ended(h.tenant, done.Erasure)
	h.drained("river_job WHERE kind = 'archive' AND finalized_at IS NULL") // one was putting an object just then
	v := verify.Verifier{Store: h.store}
	if left, err := v.Receipt(h.Context(), found.Receipt); err != nil || len(left) > 0 {
		h.Errorf("of %s is left %q, %v", s.ID, left, err)
	}
	h.sessions = slices.DeleteFunc(h.sessions, func(o *told) bool { return o == s })
}

// TestAnObjectStaysAsLongAsAForkNeedsIt archives a session whose results were put into one object when it was restored,
// and some of which a fork shares.
func TestAnObjectStaysAsLongAsAForkNeedsIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.inFiles()
	at, bodies := w.archivable("s")
	w.work(jobs.Config{})
	w.offloaded()
	w.archived(at)
	w.restored(at)
	fork := w.fork(at, "fork", 20)
	w.archived(at)
	w.drained("river_job WHERE kind = 'archive' AND finalized_at IS NULL") // it has forgotten the objects
	w.whole(fork, bodies[:20])
	w.verified()
	w.restored(at)
	w.whole(at, bodies)
	for _, at := range []session.Address{at, fork} {
		if _, err := w.store.Delete(t.Context(), at, nil); err != nil {
			t.Fatal(err)
		}
	}
	w.drained("erasures WHERE state <> 'done'")
	w.noObjectIsLeft()
}
