package spec

import (
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/internal/json"
)

// Parse decodes a config.json. The error is a [*json.SyntaxError] with line and
// column, or [Errors] with a complaint for each value of a wrong type.
//
// It differs from encoding/json in being stricter: invalid UTF-8, duplicate
// keys, null in lists, missing required entries and keys in another case are
// refused.
func Parse(data []byte) (*specs.Spec, error) {
	v := new(specs.Spec)
	return result(v, decode(data, v, decodeSpec))
}

// ParseProcess decodes a process object, as exec --process takes it.
func ParseProcess(data []byte) (*specs.Process, error) {
	v := new(specs.Process)
	return result(v, decode(data, v, decodeProcess))
}

// ParseResources decodes a resources object, as update -r takes it.
func ParseResources(data []byte) (*specs.LinuxResources, error) {
	v := new(specs.LinuxResources)
	return result(v, decode(data, v, decodeLinuxResources))
}

// ParseSeccomp decodes a seccomp profile, as linux.seccomp of a config has it.
func ParseSeccomp(data []byte) (*specs.LinuxSeccomp, error) {
	v := new(specs.LinuxSeccomp)
	return result(v, decode(data, v, decodeLinuxSeccomp))
}

func result[T any](v *T, err error) (*T, error) {
	if err != nil {
		return nil, err
	}
	return v, nil
}

// decode fills v as far as it can, also where it returns complaints.
func decode[T any](data []byte, v *T, into func(*json.Decoder, *T)) error {
	d := json.NewDecoder(data)
	into(d, v)
	if err := d.Syntax(); err != nil {
		return err
	}
	faults, more := d.Faults()
	if len(faults) == 0 {
		return nil
	}
	list := collector{more: more}
	for _, f := range faults {
		list.add(Complaint{Pointer: f.Pointer, Message: f.Message})
	}
	return list.errors()
}

// mark notes that a key of the current structure has been seen.
func mark(d *json.Decoder, seen, bit uint64) uint64 {
	if seen&bit != 0 {
		d.Duplicate()
	}
	return seen | bit
}

// otherCase refuses a key that another one is meant by. What reads configs by encoding/json
// takes it for that one, so to ignore it would be to run as another user, or without a limit.
func otherCase(d *json.Decoder, keys ...string) {
	for _, key := range keys {
		if strings.EqualFold(key, d.Key()) {
			d.Fault("is an unknown key (did you mean " + key + "?)")
			return
		}
	}
	if d.NoteUnknown {
		noteUnknown(d, keys)
	}
}

func require(d *json.Decoder, seen, bit uint64, key string) {
	if seen&bit == 0 {
		d.Missing(key)
	}
}
