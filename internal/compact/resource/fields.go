package resource

import "github.com/varve-dev/varve/internal/rawjson"

// Fields returns the key of a call by the arguments that identify it: the tool and the canonical JSON of fields, in
// their order, null for a missing one. Without fields, all calls of the tool have one key if toolOnly, else those with
// equal arguments. ok is false if there are fields but the arguments are not a JSON object.
func Fields(tool string, fields []string, toolOnly bool, arguments []byte) (key string, ok bool) {
	if len(fields) == 0 && toolOnly {
		return tool + "|__tool_only__", true
	}
	if trim(string(arguments)) == "" {
		arguments = []byte("{}")
	}
	o, ok := parse(arguments)
	switch {
	case len(fields) == 0 && ok:
		return tool + "|" + string(rawjson.AppendCanonical(nil, o.data)), true
	case len(fields) == 0:
		return tool + "|" + string(arguments), true
	case !ok:
		return "", false
	}
	return tool + "|" + string(o.pick(fields)), true
}

// pick returns the canonical JSON object of the named members, in the order of names.
func (o object) pick(names []string) []byte {
	index := make(map[string]int, len(names))
	for i, name := range names {
		index[name] = i
	}
	found := o.values(index)
	dst := []byte{'{'}
	for _, name := range names {
		if len(dst) > 1 {
			dst = append(dst, ',')
		}
		dst = append(rawjson.Quote(dst, []byte(name)), ':')
		if span := found[index[name]]; span.End > 0 {
			dst = rawjson.AppendCanonical(dst, span.Of(o.data))
		} else {
			dst = append(dst, "null"...)
		}
	}
	return append(dst, '}')
}
