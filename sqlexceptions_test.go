package varve

// The reasons of sqlExceptions.
const (
	ofAllTenants = "operators read all tenants, by an index of the place in the list"
	ofTheWhole   = "a backup has the whole database"
)

// sqlExceptions are the statements whose condition does not begin with the tenant, each with its reason.
var sqlExceptions = map[string]string{
	"internal/backup/file.go: select result_bodies: WHERE begins with store <> 0": ofTheWhole,
	"internal/backup/file.go: select {}: WHERE begins with nothing":               ofTheWhole,
	"internal/backup/restore.go: select {}: WHERE begins with nothing":            ofTheWhole,
	"internal/postgres/fleet.go: select {}: WHERE begins with {} and ( {}":        ofAllTenants,
}
