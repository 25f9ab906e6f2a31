package foreign

import (
	"errors"
	"fmt"
	"math"
	"strconv"
)

// read returns a value as the policy has it. The error says which kind of value the setting must have.
func (s setting) read(value any) (any, error) {
	switch s.Kind {
	case "share":
		return numberOf(value)
	case "count":
		n, err := numberOf(value)
		if err != nil || math.Abs(n) > math.MaxInt32 {
			return nil, errors.New("must be a number")
		}
		count := int(n) + s.Add // the systems cut fractions off
		if s.Least != nil {
			count = max(count, *s.Least)
		}
		return count, nil
	case "switch":
		if on, ok := value.(bool); ok {
			return on, nil
		}
		return nil, errors.New("must be true or false")
	case "text":
		if text, ok := value.(string); ok {
			return text, nil
		}
		return nil, errors.New("must be a string")
	case "names":
		return namesOf(value)
	}
	if table, ok := value.(map[string]any); ok {
		return table, nil
	}
	if list, ok := value.([]any); ok && len(list) == 0 { // an empty table of PHP
		return map[string]any{}, nil
	}
	return nil, errors.New("must be an object")
}

func numberOf(value any) (float64, error) {
	switch n := value.(type) {
	case int:
		return float64(n), nil
	case float64:
		if !math.IsNaN(n) && !math.IsInf(n, 0) {
			return n, nil
		}
	}
	return 0, errors.New("must be a number")
}

func namesOf(value any) (any, error) {
	list, ok := value.([]any)
	for _, entry := range list {
		if _, text := entry.(string); !text {
			ok = false
		}
	}
	if !ok {
		return nil, errors.New("must be an array of strings")
	}
	return list, nil
}

// outside reports whether the system itself refuses a number.
func (s setting) outside(value any) bool {
	n, err := numberOf(value)
	return err == nil && (s.Low != nil && n < *s.Low || s.High != nil && n > *s.High)
}

// leavesNothing reports whether the system takes a fraction, of a setting above 0, of which nothing whole is left.
func (s setting) leavesNothing(value any) bool {
	n, err := numberOf(value)
	return err == nil && s.Kind == "count" && s.Low != nil && *s.Low == 1 && 0 < n && n < 1
}

// shown returns a value as the systems write it in an error.
func shown(value any) string {
	if n, ok := value.(float64); ok {
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	return fmt.Sprint(value)
}
