package imports

// Bounded returns the feature with other bounds for a body.
var Bounded = bounded
