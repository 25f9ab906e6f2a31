// Package conformance holds Varve to the recorded behaviour of the five systems that it unites. It has tests only.
//
// A vector is one recorded call of a system: an operation, its input and its output (testdata/vectors, as they were
// recorded). It becomes a question to the product, a compaction as POST /v1/compact does it, with the system's profile
// and the vector's settings as varve policy from translates them, and the answer is compared with the record to the
// letter. There is one file a system, which translates shapes of messages and decides nothing. What Varve does
// differently on purpose is in classes_test.go, by class.
//
// variants_test.go makes other vectors of these. Their records are what the oracle of the system says, one file a
// system, which is held to the recorded ones.
//
// What reaches a model is compared where it arrives: product_test.go runs the API, a worker and a provider over HTTP.
//
// Start at harness_test.go. VARVE_VECTORS=DIR runs the vectors of another folder: every DIR/<system>/*.json.
package conformance
