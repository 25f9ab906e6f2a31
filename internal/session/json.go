package session

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/varve-dev/varve/internal/rawjson"
)

// JSONLimits bound one message, and every JSON document of our own shape.
var JSONLimits = rawjson.Limits{Depth: MaxJSONDepth, Nodes: MaxJSONNodes, NumberBytes: MaxNumberBytes}

// CheckJSON checks that data is one JSON value within limits. Its error is an *InvalidError at pointer, with the code
// invalid_json or json_too_complex.
func CheckJSON(pointer string, data []byte, limits rawjson.Limits) error {
	return JSONError(pointer, rawjson.Check(data, limits))
}

// JSONError returns the error of CheckJSON for one of rawjson.Check.
func JSONError(pointer string, err error) error {
	var syntax *rawjson.SyntaxError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &syntax):
		return err
	case syntax.Limit == "depth":
		return Invalid(pointer, "json_too_complex",
			"nested deeper than %d levels (at byte %d)", MaxJSONDepth, syntax.Offset)
	case syntax.Limit != "":
		return Invalid(pointer, "json_too_complex", "%s (at byte %d)", syntax.Detail, syntax.Offset)
	}
	return Invalid(pointer, "invalid_json", "%s (at byte %d)", syntax.Detail, syntax.Offset)
}

// CheckID returns what is wrong with a session's id, "" for nothing.
func CheckID(id string) string {
	switch {
	case id == "":
		return "is empty"
	case id == "." || id == "..":
		return "must not be a step of a path"
	case len(id) > MaxIDBytes:
		return fmt.Sprintf("has %d bytes: the limit is %d", len(id), MaxIDBytes)
	case !utf8.ValidString(id):
		return "is not UTF-8"
	case strings.IndexByte(id, 0) >= 0:
		return "must not contain a NUL character"
	}
	return ""
}
