package spec

import (
	"errors"
	"slices"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// ParseChecked is Parse and Check in one, for their complaints together. The
// warnings are those of Check.
func ParseChecked(data []byte) (s *specs.Spec, warnings []Complaint, err error) {
	s = new(specs.Spec)
	var c checker
	if err := decode(data, s, decodeSpec); err != nil {
		if !errors.As(err, &c.faults) || decisive(c.faults) {
			return nil, nil, err
		}
		c.kept = slices.Clone(c.faults)
	}
	c.spec(s)
	if err := c.errors(); err != nil {
		return nil, c.warnings, err
	}
	return s, c.warnings, nil
}

// decisive tells whether a fault is in an entry that many others depend on, so
// that checking without it would only mislead.
func decisive(faults Errors) bool {
	return slices.ContainsFunc(faults, func(f Complaint) bool {
		if f.Pointer == "" || f.Pointer == "/linux" {
			return true // also where complaints have been cut
		}
		for _, entry := range [3]string{"/linux/namespaces", "/linux/uidMappings", "/linux/gidMappings"} {
			if strings.HasPrefix(f.Pointer, entry) {
				return true
			}
		}
		return false
	})
}

// mayFollowFrom tells whether a complaint may only be the consequence of a
// fault: it is about the same entry, one in it, or one around it.
func (c Complaint) mayFollowFrom(fault Complaint) bool {
	within := func(inner, outer string) bool {
		rest, ok := strings.CutPrefix(inner, outer)
		return ok && (rest == "" || rest[0] == '/')
	}
	return within(c.Pointer, fault.Pointer) || within(fault.Pointer, c.Pointer)
}
