package verify_test

import "testing"

func TestRecordedSessionsAreCleanAfterCompactionsAndOffload(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, s := range corpus(t, "") {
		w.offload(w.save(named(s), s, 20_000, 40, false))
	}
	report := w.clean()
	var packs, holes int
	err := w.admin.QueryRow(t.Context(), `
		SELECT count(*), sum(raw - octet_length(body)) FROM message_packs`).Scan(&packs, &holes)
	if err != nil || packs == 0 || report.Sessions < 50 || report.Unexplained != 0 {
		t.Errorf("looked at %+v, %d packs, %v", report, packs, err)
	}
}
