package varve

// The reasons of sqlExceptions.
const (
	ofAllTenants = "operators read all tenants, by an index, and no more than a page or a count that ends"
	ofTheWhole   = "a backup has the whole database"
	ofAGroup     = "the recompactions of many tenants, which operators begin, have one group, and an index begins with it"
)

// sqlExceptions are the statements whose condition does not begin with the tenant, each with its reason.
var sqlExceptions = map[string]string{
	"internal/backup/file.go: select result_bodies: WHERE begins with store <> 0": ofTheWhole,
	"internal/backup/file.go: select {}: WHERE begins with nothing":               ofTheWhole,
	"internal/backup/restore.go: select {}: WHERE begins with nothing":            ofTheWhole,
	"internal/postgres/sessions_all.go: select {}: WHERE begins with {} and ( {}": ofAllTenants,

	"internal/usage/fleet.go: select model_spending: WHERE begins with day between $1 and":           ofAllTenants,
	"internal/usage/fleet.go: select session_failures: WHERE begins with nothing":                    ofAllTenants,
	"internal/usage/fleet.go: select session_failures: WHERE begins with quarantined_at is not null": ofAllTenants,
	"internal/usage/fleet.go: select usage_days: WHERE begins with day between $1 and":               ofAllTenants,
	"internal/usage/fleet.go: select usage_sessions: WHERE begins with nothing":                      ofAllTenants,
	"internal/usage/fleet.go: select usage_sessions: WHERE begins with over_window":                  ofAllTenants,

	"internal/recompact/store_groups.go: select recompactions: WHERE begins with group_id = $1":        ofAGroup,
	"internal/recompact/store_groups.go: select recompactions: WHERE begins with group_id is not null": ofAGroup,
}
