package varve

// The reasons of sqlExceptions.
const (
	ofAllTenants = "operators read all tenants, by an index of the place in the list"
	ofTheWhole   = "a backup has the whole database"
	ofAGroup     = "the recompactions of many tenants, which operators begin, have one group, and an index begins with it"
)

// sqlExceptions are the statements whose condition does not begin with the tenant, each with its reason.
var sqlExceptions = map[string]string{
	"internal/backup/file.go: select result_bodies: WHERE begins with store <> 0": ofTheWhole,
	"internal/backup/file.go: select {}: WHERE begins with nothing":               ofTheWhole,
	"internal/backup/restore.go: select {}: WHERE begins with nothing":            ofTheWhole,
	"internal/postgres/sessions_all.go: select {}: WHERE begins with {} and ( {}": ofAllTenants,

	"internal/recompact/store_groups.go: select recompactions: WHERE begins with group_id = $1":        ofAGroup,
	"internal/recompact/store_groups.go: select recompactions: WHERE begins with group_id is not null": ofAGroup,
}
