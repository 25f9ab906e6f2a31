package due_test

import (
	"context"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/due"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/postgres/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// random returns a session, and a number of tokens that is often just at one of its thresholds.
func random(r *rand.Rand) (s due.Session, tokens int64) {
	s = due.Session{
		Window: 1 + r.Int64N(2_000_000), Calibration: float64(float32(0.5 + 2.5*r.Float64())),
		Unseen: r.Int64N(200_000) - 20_000, Armed: due.Threshold(1 + r.IntN(3)),
		Rule: due.Rule{Trigger: 0.01 + 0.98*r.Float64(), OnRequest: r.IntN(10) == 0},
	}
	s.Hard = s.Trigger + (1-s.Trigger)*r.Float64()
	if r.IntN(3) == 0 {
		s.TriggerBytes, s.Bytes = r.Int64N(4), r.Int64N(4)
	}
	if r.IntN(4) == 0 {
		s.TriggerTokens = 1 + r.Int64N(s.Window)
	}
	if r.IntN(4) == 0 {
		s.Trim = r.Float64()
	}
	if r.IntN(4) == 0 {
		s.Budget = due.Budget{Ratio: r.Float64() * float64(r.IntN(2)), Min: 1 + r.Int64N(40_000)}
		s.Budget.Max = s.Budget.Min + int64(r.IntN(2))*r.Int64N(s.Window)
	}
	if r.IntN(4) > 0 {
		s.IdleFrom, s.IdleAsked = s.Trigger*r.Float64(), r.IntN(4) == 0
	}
	if r.IntN(2) == 0 {
		s.Floor = due.Floor{Tokens: r.Int64N(s.Window), Hides: due.Threshold(r.IntN(3)), Seq: r.Int64N(3), Engine: r.IntN(8) / 7}
		s.Seq, s.Version = r.Int64N(3), r.IntN(8)/7
	}
	window := s.EstimatedWindow()
	if r.IntN(4) == 0 {
		s.Floor.Tokens = max(int64(s.TriggerAt()/s.Calibration-s.EstimatedUnseen())+r.Int64N(3)-1, 0)
	}
	near := []float64{
		s.TriggerAt()/s.Calibration - s.EstimatedUnseen(),
		s.Hard*window - s.EstimatedUnseen(),
		s.Trim*window - s.EstimatedUnseen(),
		s.IdleFrom*window - s.EstimatedUnseen(),
		s.Budget.Ratio * window,
		float64(s.Budget.Max),
		float64(s.Floor.Tokens) + due.Regrowth*window,
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
		SELECT $8::bigint >= ` + due.ArmedSQL(`s.calibration`, `s.unseen_tokens`, `s.last_seq`, `s.bytes`, 0) + `, $8::bigint >= ` + due.TriggerSQL(`s.calibration`, `s.unseen_tokens`, `s.last_seq`, `s.bytes`, 0) + `
		  FROM (SELECT $1::int AS window_tokens, $2::real AS calibration, $3::bigint AS floor_tokens, $4::smallint AS armed_threshold, $9::bigint AS unseen_tokens,
		               $17::bool AS idle_asked, $18::bigint AS last_seq, $19::bigint AS floor_seq, $20::int AS floor_version,
		               $22::smallint AS floor_hides, $23::int AS floor_engine, $24::bigint AS bytes) s,
		       (SELECT $5::float8 AS trigger_ratio, $6::float8 AS hard_ratio, $7::bool AS calibrate, $10::bool AS on_request,
		               $11::bigint AS trigger_tokens, $12::float8 AS trim_ratio, $13::float8 AS budget_ratio, $14::bigint AS budget_min, $15::bigint AS budget_max,
		               $16::float8 AS idle_ratio, $21::int AS tenant_version, $25::bigint AS trigger_bytes) p`
	r := rand.New(rand.NewPCG(1, 2))
	reached, idle := 0, 0
	for range 10_000 {
		s, tokens := random(r)
		calibrate := r.IntN(3) > 0
		var armed, trigger bool
		args := []any{
			s.Window, s.Calibration, s.Floor.Tokens, int16(s.Armed), s.Trigger, s.Hard, calibrate, tokens, s.Unseen,
			s.OnRequest, s.TriggerTokens, s.Trim, s.Budget.Ratio, s.Budget.Min, s.Budget.Max,
			s.IdleFrom, s.IdleAsked, s.Seq, s.Floor.Seq, s.Floor.Version, s.Version, int16(s.Floor.Hides), s.Floor.Engine, s.Bytes, s.TriggerBytes,
		}
		if err := conn.QueryRow(t.Context(), sql, args...).Scan(&armed, &trigger); err != nil {
			t.Fatal(err)
		}
		if !calibrate {
			s.Calibration, s.Unseen = 1, 0
		}
		threshold, want := s.Due(tokens)
		if threshold == due.Idle {
			idle++
		}
		if armed != want {
			t.Fatalf("%+v with %d tokens: the expression reports %t, the function %t", s, tokens, armed, want)
		}
		s.Armed, s.IdleAsked = due.Trigger, true
		if _, want := s.Due(tokens); trigger != want {
			t.Fatalf("%+v with %d tokens, trigger armed: the expression reports %t, the function %t", s, tokens, trigger, want)
		}
		if trigger {
			reached++
		}
	}
	if reached < 2000 || reached > 8000 || idle < 100 {
		t.Errorf("%d of 10000 sessions are due, %d once they are idle: the test looks at one side only", reached, idle)
	}
}

func TestASessionIsDueAtTheThresholdThatIsArmed(t *testing.T) {
	t.Parallel()
	s := due.Session{Window: 1000, Calibration: 1, Rule: due.Rule{Trigger: 0.8, Hard: 0.95}}
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
		{due.Trigger, 940, 949, 0},
		{due.Trigger, 940, 950, due.Hard},
	} {
		s.Armed, s.Floor = c.armed, due.Floor{Tokens: c.floor, Hides: due.Hard}
		if got, ok := s.Due(c.tokens); got != c.want || ok != (c.want != 0) {
			t.Errorf("%d armed, floor %d, %d tokens: threshold %d, %t; want %d", c.armed, c.floor, c.tokens, got, ok, c.want)
		}
	}
}

func TestAPolicyDecidesWhenASessionIsDue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rule   due.Rule
		floor  int64
		tokens int64
		want   due.Threshold
	}{
		"below so many tokens":                {due.Rule{Trigger: 0.1, TriggerTokens: 700, Hard: 0.9}, 0, 699, 0},
		"at so many tokens":                   {due.Rule{Trigger: 0.1, TriggerTokens: 700, Hard: 0.9}, 0, 700, due.Trigger},
		"at the hard limit, below so many":    {due.Rule{Trigger: 0.1, TriggerTokens: 5000, Hard: 0.9}, 0, 900, due.Hard},
		"only on request":                     {due.Rule{OnRequest: true, Trigger: 0.1, Hard: 0.9}, 0, 1000, 0},
		"below an eager trim":                 {due.Rule{Trigger: 0.7, Hard: 0.9, Trim: 0.25}, 0, 249, 0},
		"at an eager trim":                    {due.Rule{Trigger: 0.7, Hard: 0.9, Trim: 0.25}, 0, 250, due.Trigger},
		"grown little since an eager trim":    {due.Rule{Trigger: 0.7, Hard: 0.9, Trim: 0.25}, 300, 349, 0},
		"grown enough since an eager trim":    {due.Rule{Trigger: 0.7, Hard: 0.9, Trim: 0.25}, 300, 350, due.Trigger},
		"the trigger, grown little":           {due.Rule{Trigger: 0.7, Hard: 0.9, Trim: 0.25}, 690, 700, due.Trigger},
		"below a budget":                      {due.Rule{Trigger: 0.7, Hard: 0.9, Budget: due.Budget{Ratio: 0.25, Min: 300, Max: 400}}, 0, 299, 0},
		"at the least budget":                 {due.Rule{Trigger: 0.7, Hard: 0.9, Budget: due.Budget{Ratio: 0.25, Min: 300, Max: 400}}, 0, 300, due.Trigger},
		"at the budget's share":               {due.Rule{Trigger: 0.7, Hard: 0.9, Budget: due.Budget{Ratio: 0.35, Min: 300, Max: 400}}, 0, 350, due.Trigger},
		"at the most budget":                  {due.Rule{Trigger: 0.7, Hard: 0.9, Budget: due.Budget{Ratio: 0.6, Min: 300, Max: 400}}, 0, 400, due.Trigger},
		"a budget beyond the trigger":         {due.Rule{Trigger: 0.7, Hard: 0.9, Budget: due.Budget{Min: 5000, Max: 5000}}, 0, 700, due.Trigger},
		"an eager trim beyond the hard limit": {due.Rule{Trigger: 0.7, Hard: 0.9, Trim: 1}, 0, 700, due.Trigger},
	} {
		s := due.Session{Window: 1000, Calibration: 1, Rule: c.rule, Floor: due.Floor{Tokens: c.floor, Hides: due.Hard}, Armed: due.Trigger}
		if got, ok := s.Due(c.tokens); got != c.want || ok != (c.want != 0) {
			t.Errorf("%s: threshold %d, %t; want %d", name, got, ok, c.want)
		}
	}
}

// TestNoSessionIsDueAgainAtOnce compacts in vain: whatever the policy is, the session must grow before the next time.
func TestNoSessionIsDueAgainAtOnce(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	for range 10_000 {
		s, tokens := random(r)
		s.Armed, s.Floor = due.Trigger, due.Floor{}
		s.Version = 0
		if _, ok := s.Due(tokens); !ok || tokens < 1 {
			continue
		}
		if s.Floor = s.FloorAfter(tokens); s.Floor.Tokens != tokens {
			t.Fatalf("%+v: the floor after %d tokens is %d", s, tokens, s.Floor.Tokens)
		}
		trigger := s.TriggerAt()/s.Calibration - s.EstimatedUnseen()
		grown := int64(due.Regrowth*s.EstimatedWindow()) - 1
		hard := s.Hard*s.EstimatedWindow() - s.EstimatedUnseen()
		next := tokens + grown/2
		if float64(next) >= hard && float64(tokens) < hard {
			continue // the hard limit waits for nothing
		}
		if float64(next) < trigger || float64(tokens) >= trigger {
			if _, ok := s.Due(next); ok && grown > 1 {
				t.Fatalf("%+v is due at %d tokens, after a compaction left %d", s, next, tokens)
			}
		}
	}
}

// TestTheColumnsAreThePolicys stores policies and reads what the due rule reads of them.
func TestTheColumnsAreThePolicys(t *testing.T) {
	t.Parallel()
	conn, err := pgx.Connect(t.Context(), pgtest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	for _, document := range []string{
		`{}`, `{"profile":"cortex"}`, `{"profile":"codelia"}`, `{"profile":"falai"}`, `{"auto":false}`, `{"enabled":false}`,
		`{"trigger_tokens":5000}`, `{"trim":{"eager":true,"floor_ratio":0}}`, `{"trim":{"eager":true,"enabled":false}}`,
		`{"trim":{"eager":true,"floor_ratio":0.123}}`, `{"budget":{"eager":true}}`, `{"budget":{"eager":true,"enabled":true,"tokens":77}}`,
		`{"budget":{"enabled":true,"eager":true,"ratio":0.3,"min_tokens":5,"max_tokens":600}}`,
		`{"idle":{"enabled":true}}`, `{"idle":{"enabled":true,"from":0.123,"after_seconds":77}}`, `{"idle":{"enabled":false}}`,
		`{"idle":{"enabled":true},"economy":{"ttl_seconds":3600}}`,
	} {
		p, err := policy.Parse([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		tx, err := conn.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		const insert = `
			WITH t AS (INSERT INTO tenants (id, name) VALUES (gen_random_uuid(), 'x') RETURNING id)
			INSERT INTO policies AS p (tenant_id, id, trigger_ratio, hard_ratio, document, cache_ttl)
			SELECT t.id, gen_random_uuid(), $1, $2, $3, make_interval(secs => $4)
			  FROM t
			RETURNING ` + due.PolicyColumns
		var got due.Rule
		err = tx.QueryRow(t.Context(), insert, p.Trigger, p.Hard, p.Document(), p.Cache.TTLSeconds).Scan(got.Columns()...)
		if diff := cmp.Diff(p.DueRule(), got); err != nil || diff != "" {
			t.Errorf("%s: %v, rule (-policy +columns):\n%s", document, err, diff)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAPostponedCompactionIsDueAtTheHardLimit(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for range 1000 {
		s, _ := random(r)
		s.OnRequest = false
		s.Hard = max(s.Hard, due.Regrowth)
		s.Floor = s.FloorAfterPostponed(int64(2 * s.EstimatedWindow()))
		s.Armed = due.Trigger
		hard := max(s.Hard*s.EstimatedWindow()-s.EstimatedUnseen(), due.Regrowth*s.EstimatedWindow())
		if _, ok := s.Due(int64(hard) + 1); !ok {
			t.Fatalf("%+v is not due at its hard limit", s)
		}
	}
}

// TestAPostponedCompactionIsNotDueAtOnce postpones whatever waits: were the session due at once, its compaction would be
// postponed again and again.
func TestAPostponedCompactionIsNotDueAtOnce(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 8))
	postponed := 0
	for range 10_000 {
		s, tokens := random(r)
		s.Armed, s.Floor, s.IdleAsked = due.Trigger, due.Floor{}, false
		if r.IntN(2) == 0 {
			s.Hard = min(1, s.Trigger+due.Regrowth*r.Float64())
		}
		if reached, ok := s.Due(tokens); !ok || reached == due.Hard || tokens < 1 {
			continue
		}
		postponed++
		s.Floor = s.FloorAfterPostponed(tokens)
		if reached, ok := s.Due(tokens); ok && due.Regrowth*s.EstimatedWindow() > 1 {
			t.Fatalf("%+v has reached %d again with the same %d tokens", s, reached, tokens)
		}
	}
	if postponed < 1000 {
		t.Errorf("only %d were postponed", postponed)
	}
}

// TestAFloorBelowTheTriggerHidesNothingAboveIt counts the tokens anew: the trigger falls below a floor that was set
// because there was nothing more to do above it.
func TestAFloorBelowTheTriggerHidesNothingAboveIt(t *testing.T) {
	t.Parallel()
	s := due.Session{Window: 1000, Calibration: 1, Armed: due.Trigger, Rule: due.Rule{Trigger: 0.8, Hard: 0.95, Trim: 0.2}}
	s.Floor = s.FloorAfter(450)
	if _, ok := s.Due(450); ok {
		t.Error("due below the trigger, although nothing was left to do")
	}
	s.Calibration = 2 // the trigger is at 400
	if reached, ok := s.Due(450); !ok || reached != due.Trigger {
		t.Errorf("reached %d, %t at 900 of 1000 tokens by the provider's count", reached, ok)
	}
}

func TestASessionIsCompactedOnceItIsIdle(t *testing.T) {
	t.Parallel()
	const forever = 1e9
	s := due.Session{Window: 1000, Calibration: 1, Rule: due.Rule{Trigger: 0.8, Hard: 0.95, IdleFrom: 0.5, IdleAfter: 300}}
	type answer struct {
		reached due.Threshold
		after   int64
		isDue   bool
	}
	for name, c := range map[string]struct {
		change  func(*due.Session)
		tokens  int64
		seconds float64
		want    answer
	}{
		"too small":                      {nil, 499, forever, answer{}},
		"idle":                           {nil, 500, 300, answer{due.Idle, 300, true}},
		"used again in time":             {nil, 500, 299.9, answer{due.Idle, 300, false}},
		"asked already":                  {func(s *due.Session) { s.IdleAsked = true }, 500, 300, answer{due.Idle, 300, true}},
		"switched off":                   {func(s *due.Session) { s.IdleFrom = 0 }, 799, forever, answer{}},
		"on request":                     {func(s *due.Session) { s.OnRequest = true }, 999, forever, answer{}},
		"at the trigger, nothing waits":  {nil, 800, 0, answer{due.Trigger, 0, true}},
		"at the trigger, warm":           {func(s *due.Session) { s.ColdAfter = 60 }, 800, 59, answer{due.Trigger, 60, false}},
		"at the trigger, cold":           {func(s *due.Session) { s.ColdAfter = 60 }, 800, 60, answer{due.Trigger, 60, true}},
		"at the hard limit":              {func(s *due.Session) { s.ColdAfter = 60 }, 950, 0, answer{due.Hard, 0, true}},
		"grown little since":             {func(s *due.Session) { s.Floor.Tokens = 500 }, 549, forever, answer{}},
		"grown enough since":             {func(s *due.Session) { s.Floor.Tokens = 500 }, 550, forever, answer{due.Idle, 300, true}},
		"grown little, but more is free": {func(s *due.Session) { s.Floor, s.Seq = due.Floor{Tokens: 500, Seq: 7}, 7 }, 501, forever, answer{due.Idle, 300, true}},
		"not yet":                        {func(s *due.Session) { s.Floor, s.Seq = due.Floor{Tokens: 500, Seq: 7}, 6 }, 501, forever, answer{}},
		"grown little, another engine":   {func(s *due.Session) { s.Floor.Tokens, s.Engine = 500, 1 }, 501, forever, answer{due.Idle, 300, true}},
		"grown little, another policy":   {func(s *due.Session) { s.Floor.Tokens, s.Version = 500, 1 }, 501, forever, answer{due.Idle, 300, true}},
	} {
		of := s
		if c.change != nil {
			c.change(&of)
		}
		reached, after, isDue := of.DueWithin(c.tokens, c.seconds)
		if got := (answer{reached, after, isDue}); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	if floor := s.FloorAfter(499).Tokens; floor != 0 {
		t.Errorf("the floor after 499 tokens is %d", floor)
	}
	if floor := s.FloorAfter(500).Tokens; floor != 500 {
		t.Errorf("the floor after 500 tokens is %d", floor)
	}
}

func TestASessionIsDueByItsBytes(t *testing.T) {
	t.Parallel()
	for images, want := range map[int64]bool{2: false, 3: true} {
		s := due.Session{Window: 1000, Armed: due.Trigger, Rule: due.Rule{Trigger: 0.8, Hard: 0.95}, Images: images, MaxImages: 6}
		if _, ok := s.Due(10); ok != want {
			t.Errorf("with %d images of 6: due %t", images, ok)
		}
	}
	s := due.Session{Window: 1000, Calibration: 1, Bytes: 99, Armed: due.Trigger, Rule: due.Rule{Trigger: 0.8, Hard: 0.95, TriggerBytes: 100}}
	if got, ok := s.Due(10); ok {
		t.Errorf("with 99 bytes it reaches %d", got)
	}
	if floor := s.FloorAfter(10); floor != (due.Floor{}) {
		t.Errorf("with 99 bytes it has a floor %+v", floor)
	}
	s.Bytes = 100
	if got, ok := s.Due(10); !ok || got != due.Trigger {
		t.Errorf("with 100 bytes it reaches %d, %t", got, ok)
	}
	s.Armed = due.Hard
	if got, ok := s.Due(10); ok {
		t.Errorf("asked for already, it reaches %d", got)
	}
	s.Armed, s.Floor = due.Trigger, s.FloorAfter(10)
	for tokens, want := range map[int64]bool{10: false, 59: false, 60: true} {
		if _, ok := s.Due(tokens); ok != want {
			t.Errorf("a compaction left 10 tokens and 100 bytes: due with %d tokens: %t", tokens, ok)
		}
	}
}
