package api_test

import (
	"net/http"
	"strings"
	"testing"
)

func TestAnImportWhoseClientHungUpSaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	text := archiveOf(t, 300)
	w.feed("/v1/imports", text[:len(text)/2], true, "")
	list := decoded[struct{ Data []imported }](w.must(http.StatusOK, "GET", "/v1/imports", "")).Data
	if len(list) != 1 || list[0].State != "queued" || list[0].Error == nil || !strings.Contains(*list[0].Error, "the client hung up") {
		t.Errorf("%+v", list)
	}
}
