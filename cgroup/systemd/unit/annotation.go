package unit

import (
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/cgroup/systemd/gvariant"
	"github.com/berth-runtime/berth/internal/json"
)

// annotationPrefix marks the annotations that give properties to the unit.
const annotationPrefix = "org.systemd.property."

// Property is a property that an annotation asks for.
type Property struct {
	Name  string
	Value gvariant.Value
	// Annotation is the key that asks for it.
	Annotation string
}

// AnnotationError is an annotation that cannot be a property.
type AnnotationError struct {
	Annotation string
	Err        error
}

func (e *AnnotationError) Error() string { return "annotation " + e.Annotation + ": " + e.Err.Error() }
func (e *AnnotationError) Unwrap() error { return e.Err }

// Pointer is the JSON pointer of the annotation in the config.
func (e *AnnotationError) Pointer() string {
	return string(json.AppendKey([]byte("/annotations"), e.Annotation))
}

// Annotations gives the properties that the config's annotations ask for, sorted
// by annotation. The error joins an *AnnotationError for each that is wrong.
func Annotations(annotations map[string]string) ([]Property, error) {
	var properties []Property
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		name, ok := strings.CutPrefix(key, annotationPrefix)
		if !ok {
			continue
		}
		p, err := annotation(name, annotations[key])
		if err == nil && slices.ContainsFunc(properties, func(q Property) bool { return q.Name == p.Name }) {
			err = errors.New("the property " + p.Name + " is set twice")
		}
		if err != nil {
			errs = append(errs, &AnnotationError{key, err})
			continue
		}
		p.Annotation = key
		properties = append(properties, p)
	}
	return properties, errors.Join(errs...)
}

func annotation(name, text string) (Property, error) {
	for i := range len(name) {
		c := name[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || i > 0 && c >= '0' && c <= '9') {
			return Property{}, errors.New(strconv.Quote(name) + " is not the name of a property")
		}
	}
	switch name {
	case "":
		return Property{}, errors.New("the name of the property is missing")
	case "PIDs", "PIDFDs":
		return Property{}, errors.New("which processes the unit begins with is not for a config to say")
	}
	v, err := gvariant.Parse(text)
	if err != nil {
		return Property{}, err
	}
	if err := sendable(v, 0); err != nil {
		return Property{}, err
	}
	if stem, ok := seconds(name); ok {
		usec, err := microseconds(v)
		if err != nil {
			return Property{}, err
		}
		return Property{Name: stem + "USec", Value: gvariant.Value{Type: "t", Column: v.Column, Uint: usec}}, nil
	}
	return Property{Name: name, Value: v}, nil
}

// maxNesting keeps a value well below D-Bus's own limits, of 32 arrays, 32
// tuples and 64 of everything.
const maxNesting = 24

// sendable refuses what the format has and D-Bus does not.
func sendable(v gvariant.Value, depth int) error {
	wrong := ""
	switch {
	case depth > maxNesting:
		wrong = "nested too deep for D-Bus"
	case strings.Contains(v.Type, "m"):
		wrong = "D-Bus has no maybes"
	case strings.Contains(v.Type, "h"):
		wrong = "there are no descriptors to send"
	case len(v.Type) > 255:
		wrong = "the type is too long for D-Bus"
	case looseEntry(v.Type):
		wrong = "D-Bus has dictionary entries in arrays only"
	case strings.Count(v.Type, "a") > maxNesting || strings.Count(v.Type, "(") > maxNesting:
		// Deep types can come with empty arrays, without deep values.
		wrong = "nested too deep for D-Bus"
	case strings.Contains(v.Type, "()"):
		wrong = "D-Bus has no empty tuples"
	}
	if wrong != "" {
		return &gvariant.Error{Column: v.Column, Message: "the value has type " + strconv.Quote(v.Type) + ": " + wrong}
	}
	for _, m := range v.Members {
		if v.Type[0] == 'a' && strings.HasPrefix(m.Type, "{") {
			for _, half := range m.Members {
				if err := sendable(half, depth+1); err != nil {
					return err
				}
			}
			continue
		}
		if err := sendable(m, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// looseEntry finds an entry that no "a" is in front of.
func looseEntry(signature string) bool {
	for i := range len(signature) {
		if signature[i] == '{' && (i == 0 || signature[i-1] != 'a') {
			return true
		}
	}
	return false
}

// seconds finds the names of systemd's unit files that end in Sec, as in
// TimeoutStopSec, whose property on the bus counts microseconds and ends in USec.
// The letter before must be small, or USec itself would be one.
func seconds(name string) (stem string, ok bool) {
	stem, ok = strings.CutSuffix(name, "Sec")
	if !ok || stem == "" || stem[len(stem)-1] < 'a' || stem[len(stem)-1] > 'z' {
		return "", false
	}
	return stem, true
}

func microseconds(v gvariant.Value) (uint64, error) {
	const second = 1000000
	wrong := func(message string) (uint64, error) {
		return 0, &gvariant.Error{Column: v.Column, Message: message}
	}
	switch v.Type {
	case "y", "q", "u", "t":
		if v.Uint > math.MaxUint64/second {
			return wrong("more seconds than fit")
		}
		return v.Uint * second, nil
	case "n", "i", "x":
		if v.Int < 0 {
			return wrong("a time is not negative")
		}
		if uint64(v.Int) > math.MaxUint64/second {
			return wrong("more seconds than fit")
		}
		return uint64(v.Int) * second, nil
	case "d":
		usec := math.Round(v.Double * second)
		switch {
		case math.IsInf(v.Double, 1):
			return math.MaxUint64, nil // systemd's infinity
		case !(usec >= 0):
			return wrong("a time is not negative")
		case usec >= math.MaxUint64:
			return wrong("more seconds than fit")
		}
		return uint64(usec), nil
	}
	return wrong("a time in seconds is a number, not of type " + strconv.Quote(v.Type))
}
