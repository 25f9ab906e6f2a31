package postgres

// What only the tests of this package need of its inside.
const Role = role

var (
	ExportSQL     = exportSQL
	MigrateDown   = migrateDown
	SchemaVersion = schemaVersion
	Query         = query
)
