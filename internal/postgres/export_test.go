package postgres

// SliceSQL are the statements of a slice, by whether it descends.
var SliceSQL = sliceSQL
