package console

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/varve-dev/varve/client"
)

// jobsAt is where River UI is.
const jobsAt = root + "/jobs"

// showJobs passes requests on to River UI, for a key that the API takes now. What changes jobs asks the API, whose
// trail has a row of it; what else changes something is refused: to delete a job, or to stop a queue, would hide from
// Varve what it still has to do.
func showJobs(v *visit) error {
	if v.site.Jobs == nil {
		return showNothing(v)
	}
	v.w.Header().Set("Content-Security-Policy", ownOnly+"; style-src 'self' 'unsafe-inline'") // its scripts make styles
	if _, err := client.ReadOwnOperatorKey.Call(v.ctx, v.api); err != nil {
		return err
	}
	if v.r.Method != http.MethodGet && v.r.Method != http.MethodHead {
		return v.changeJobs(strings.TrimPrefix(v.r.URL.Path, jobsAt))
	}
	pages, err := v.site.openJobs()
	if err != nil {
		return err
	}
	pages.ServeHTTP(v.w, v.r)
	return nil
}

// changeJobs does what a request of River UI asks for.
func (v *visit) changeJobs(path string) error {
	routes := map[string]client.Effect{
		"/api/jobs/retry": "POST admin/jobs/retry", "/api/jobs/cancel": "POST admin/jobs/cancel",
	}
	route, known := routes[path]
	if !known {
		return v.answerJobs(http.StatusForbidden, "Varve lets jobs be retried and cancelled here, nothing else.")
	}
	body, err := io.ReadAll(v.r.Body)
	if err != nil {
		return err
	}
	var asked struct{ IDs []json.Number }
	if err := json.Unmarshal(body, &asked); err != nil {
		return v.answerJobs(http.StatusBadRequest, "The request is not JSON.")
	}
	var ids []int64
	for _, text := range asked.IDs {
		id, _ := strconv.ParseInt(text.String(), 10, 64) // the API refuses 0
		ids = append(ids, id)
	}
	if err := route.With(v.ctx, v.api, client.Options{Body: map[string]any{"ids": ids}}); err != nil {
		return v.answerJobs(http.StatusConflict, err.Error())
	}
	return v.answerJobs(http.StatusOK, "")
}

// answerJobs answers as River UI does.
func (v *visit) answerJobs(status int, wrong string) error {
	answer := map[string]string{"status": "ok"}
	if wrong != "" {
		answer = map[string]string{"message": wrong}
	}
	v.w.Header().Set("Content-Type", "application/json; charset=utf-8")
	v.w.WriteHeader(status)
	return json.NewEncoder(v.w).Encode(answer)
}
