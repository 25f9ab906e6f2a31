// Package conformance holds Varve's compaction to the recorded behaviour of the five systems that it unites. It has
// tests only.
//
// A vector is one recorded call of a system: an operation, its input and its output (testdata/vectors, as they were
// recorded). An adapter, one file a system, walks the system's own message shape, starts from the system's profile, and
// drives the decisions that the engine itself is made of; TestConformance compares what comes out with the record, to
// the letter. What Varve does differently on purpose stands in docs/compatibility.md, which the test reads.
//
// Start at conformance_test.go. VARVE_VECTORS=DIR, an absolute path, runs the vectors of another
// folder instead: every file DIR/<system>/*.json that holds one.
package conformance
