package spec

import (
	"slices"
	"strings"

	"github.com/berth-runtime/berth/internal/json"
	"github.com/berth-runtime/berth/internal/typo"
)

// UnknownKeys lists the keys of a config.json that the specification does not have. A runtime must
// ignore them, so a limit with a typing mistake in it is no limit; who looks at a config is told.
func UnknownKeys(data []byte) []Complaint { return unknownKeys(data, decodeSpec) }

// UnknownResourceKeys does so for a resources object.
func UnknownResourceKeys(data []byte) []Complaint { return unknownKeys(data, decodeLinuxResources) }

const unknownKey = "is not in the specification, and is ignored"

func unknownKeys[T any](data []byte, into func(*json.Decoder, *T)) []Complaint {
	d := json.NewDecoder(data)
	d.NoteUnknown = true
	into(d, new(T))
	var list []Complaint
	faults, _ := d.Faults()
	for _, f := range faults {
		if strings.HasPrefix(f.Message, unknownKey) {
			list = append(list, Complaint{Pointer: f.Pointer, Message: f.Message})
		}
	}
	return list
}

func noteUnknown(d *json.Decoder, keys []string) {
	if slices.Contains(foreign, d.Key()) {
		return
	}
	message := unknownKey
	if _, more := d.Faults(); more > 0 {
		// This one is only counted.
	} else if meant := typo.Meant(d.Key(), keys); meant != "" {
		message += " (did you mean " + meant + "?)"
	}
	d.Fault(message)
}
