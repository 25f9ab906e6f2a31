package varve

// The reasons of sqlExceptions.
const (
	ofTheDatabase = "the time is the database's: as a parameter it would be that of a process, whose clock may differ"
	ofAllTenants  = "operators read all tenants, by an index of the place in the list"
	ofATable      = "a move copies whatever tables the catalogue names: the statement's columns are only known when it runs"
	ofTheWhole    = "a backup has the whole database"
	waitsForJobs  = "a reader asks whether a compaction is about to begin: two statements would see two moments"
	healsJobs     = "it looks for jobs that were lost: the row and its job must be seen at one moment"
)

// sqlExceptions are the statements that break a rule of sqlRules, each with its reason. Whoever distributes the database
// must change them first (docs/citus.md).
var sqlExceptions = map[string]string{
	"River's tables are not read with a tenant's: internal/postgres/offload.go: river_job with sessions":                             healsJobs,
	"River's tables are not read with a tenant's: internal/postgres/recompactions_sessions.go: river_job with recompaction_sessions": healsJobs,
	"River's tables are not read with a tenant's: internal/postgres/starting.go: river_job with runs":                                waitsForJobs,
	"no clock is in CASE or COALESCE: internal/postgres/archives.go: now in case: restored_at":                                       ofTheDatabase,
	"no clock is in CASE or COALESCE: internal/postgres/archives.go: now in case: thawed_at":                                         ofTheDatabase,
	"no clock is in CASE or COALESCE: internal/postgres/cold.go: now in case: archived_at":                                           ofTheDatabase,
	"no clock is in CASE or COALESCE: internal/postgres/erase_tenant.go: now in case: suspended_at":                                  ofTheDatabase,
	"no clock is in CASE or COALESCE: internal/postgres/erasures.go: now in coalesce: started_at":                                    ofTheDatabase,
	"no clock is in CASE or COALESCE: internal/postgres/failures.go: now in coalesce: quarantined_at":                                ofTheDatabase,
	"no clock is in CASE or COALESCE: internal/postgres/imports.go: now in case: finished_at":                                        ofTheDatabase,
	"no clock is in CASE or COALESCE: internal/postgres/recompactions.go: now in coalesce: started_at":                               ofTheDatabase,
	"no clock is in CASE or COALESCE: internal/postgres/recompactions_control.go: now in case: paused_at":                            ofTheDatabase,
	"no clock is in CASE or COALESCE: internal/postgres/replays.go: now in case: finished_at":                                        ofTheDatabase,
	"no clock is in CASE or COALESCE: internal/postgres/search_index.go: now in case: due_since":                                     ofTheDatabase,
	"no clock is in CASE or COALESCE: internal/postgres/sql/advance_recompaction.sql: now in case: finished_at":                      ofTheDatabase,
	"no clock is in CASE or COALESCE: internal/postgres/sql/end_attempts.sql: clock_timestamp in case: finished_at":                  ofTheDatabase,
	"no clock is in CASE or COALESCE: internal/postgres/tenants.go: now in case: suspended_at":                                       ofTheDatabase,
	"no clock is in CASE or COALESCE: internal/webhook/deliveries.go: now in case: last_delivered_at":                                ofTheDatabase,
	"no clock is in CASE or COALESCE: internal/webhook/deliveries.go: now in case: last_failed_at":                                   ofTheDatabase,
	"no clock is in CASE or COALESCE: internal/webhook/deliveries.go: now in case: retry_at":                                         ofTheDatabase,
	"no clock is in CASE or COALESCE: internal/webhook/deliveries.go: now in coalesce: failing_since":                                ofTheDatabase,
	"no clock is in ON CONFLICT: internal/postgres/model_calls.go: now":                                                              ofTheDatabase,
	"no clock is in ON CONFLICT: internal/postgres/summaries.go: now":                                                                ofTheDatabase,
	"the tenant is first: internal/backup/file.go: select result_bodies: WHERE begins with store <> 0":                               ofTheWhole,
	"the tenant is first: internal/backup/file.go: select {}: WHERE begins with nothing":                                             ofTheWhole,
	"the tenant is first: internal/backup/restore.go: select {}: WHERE begins with nothing":                                          ofTheWhole,
	"the tenant is first: internal/postgres/fleet.go: select {}: WHERE begins with {} and ( {}":                                      ofAllTenants,
}
