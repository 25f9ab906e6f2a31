package due_test

import (
	"context"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/due"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// random returns a session, and a number of tokens that is often just at one of its thresholds.
func random(r *rand.Rand) (s due.Session, tokens int64) {
	s = due.Session{
		Window: 1 + r.Int64N(2_000_000), Calibration: float64(float32(0.5 + 2.5*r.Float64())),
		Unseen: r.Int64N(200_000) - 20_000, Trigger: 0.01 + 0.98*r.Float64(), Armed: due.Threshold(1 + r.IntN(3)),
	}
	s.Hard = s.Trigger + (1-s.Trigger)*r.Float64()
	if r.IntN(2) == 0 {
		s.Floor = r.Int64N(s.Window)
	}
	window := s.EstimatedWindow()
	near := []float64{
		s.Trigger*window - s.EstimatedUnseen(),
		s.Hard*window - s.EstimatedUnseen(),
		float64(s.Floor) + due.Regrowth*window,
		window * r.Float64(),
	}
	return s, int64(near[r.IntN(len(near))]) + r.Int64N(5) - 2
}

func TestTheExpressionIsTheFunction(t *testing.T) {
	t.Parallel()
	conn, err := pgx.Connect(t.Context(), pgtest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	sql := `
		SELECT $8::bigint >= ` + due.ArmedSQL(`s.calibration`, `s.unseen_tokens`) + `, $8::bigint >= ` + due.TriggerSQL(`s.calibration`, `s.unseen_tokens`) + `
		  FROM (SELECT $1::int AS window_tokens, $2::real AS calibration, $3::bigint AS floor_tokens, $4::smallint AS armed_threshold, $9::bigint AS unseen_tokens) s,
		       (SELECT $5::float8 AS trigger_ratio, $6::float8 AS hard_ratio, $7::bool AS calibrate) p`
	r := rand.New(rand.NewPCG(1, 2))
	reached := 0
	for range 5000 {
		s, tokens := random(r)
		calibrate := r.IntN(3) > 0
		var armed, trigger bool
		args := []any{s.Window, s.Calibration, s.Floor, int16(s.Armed), s.Trigger, s.Hard, calibrate, tokens, s.Unseen}
		if err := conn.QueryRow(t.Context(), sql, args...).Scan(&armed, &trigger); err != nil {
			t.Fatal(err)
		}
		if !calibrate {
			s.Calibration, s.Unseen = 1, 0
		}
		if _, want := s.Due(tokens); armed != want {
			t.Fatalf("%+v with %d tokens: the expression reports %t, the function %t", s, tokens, armed, want)
		}
		s.Armed = due.Trigger
		if _, want := s.Due(tokens); trigger != want {
			t.Fatalf("%+v with %d tokens, trigger armed: the expression reports %t, the function %t", s, tokens, trigger, want)
		}
		if trigger {
			reached++
		}
	}
	if reached < 1000 || reached > 4000 {
		t.Errorf("%d of 5000 sessions are due: the test looks at one side only", reached)
	}
}

func TestASessionIsDueAtTheThresholdThatIsArmed(t *testing.T) {
	t.Parallel()
	s := due.Session{Window: 1000, Calibration: 1, Trigger: 0.8, Hard: 0.95}
	for _, c := range []struct {
		armed  due.Threshold
		floor  int64
		tokens int64
		want   due.Threshold
	}{
		{due.Trigger, 0, 799, 0},
		{due.Trigger, 0, 800, due.Trigger},
		{due.Trigger, 0, 950, due.Hard},
		{due.Hard, 0, 900, 0},
		{due.Hard, 0, 950, due.Hard},
		{due.None, 0, 2000, 0},
		{due.Trigger, 850, 899, 0},
		{due.Trigger, 850, 900, due.Trigger},
		{due.Hard, 980, 1029, 0},
		{due.Hard, 980, 1030, due.Hard},
	} {
		s.Armed, s.Floor = c.armed, c.floor
		if got, ok := s.Due(c.tokens); got != c.want || ok != (c.want != 0) {
			t.Errorf("%d armed, floor %d, %d tokens: threshold %d, %t; want %d", c.armed, c.floor, c.tokens, got, ok, c.want)
		}
	}
}

func TestAPostponedCompactionIsDueAtTheHardLimit(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for range 1000 {
		s, _ := random(r)
		s.Hard = max(s.Hard, due.Regrowth)
		s.Floor = s.FloorAfterPostponed(int64(2 * s.EstimatedWindow()))
		s.Armed = due.Trigger
		s.Floor = max(s.Floor, 0) // as it is stored
		hard := max(s.Hard*s.EstimatedWindow()-s.EstimatedUnseen(), due.Regrowth*s.EstimatedWindow())
		if _, ok := s.Due(int64(hard) + 1); !ok {
			t.Fatalf("%+v is not due at its hard limit", s)
		}
	}
}
