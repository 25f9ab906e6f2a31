package verify_test

import "testing"

func TestRecordedSessionsAreClean(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, s := range corpus(t, "") {
		w.save(named(s), s, 20_000, 40, false)
	}
	report := w.clean()
	t.Logf("%+v", report)
}
