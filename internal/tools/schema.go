package tools

// object is a JSON object of a schema. Its members are encoded in the order of their names.
type object map[string]any

// InputSchema returns the JSON Schema of a tool's arguments.
func (d *Definition) InputSchema() any { return d.inputSchema(true) }

func (d *Definition) inputSchema(closed bool) object {
	properties, required := object{}, []string{}
	for i := range d.Arguments {
		a := &d.Arguments[i]
		properties[a.Name] = a.schema()
		if a.Required {
			required = append(required, a.Name)
		}
	}
	schema := object{"type": "object", "properties": properties}
	if len(required) > 0 {
		schema["required"] = required
	}
	if closed {
		schema["additionalProperties"] = false
	}
	return schema
}

func (a *Argument) schema() object {
	schema := object{"type": string(a.Kind), "description": a.Description}
	if a.Kind == integer {
		schema["minimum"] = a.Min
		if a.Max < maxNumber {
			schema["maximum"] = a.Max
		}
	}
	return schema
}
