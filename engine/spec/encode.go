package spec

import (
	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/internal/json"
)

// Format writes a spec as JSON, leaving out what is empty, as encoding/json
// does by the structures' tags. With an indent each entry has its line. The
// sections of other platforms than Linux are not written.
func Format(s *specs.Spec, indent string) []byte {
	w := json.NewWriter(make([]byte, 0, 4096), indent)
	encodeSpec(w, s)
	return w.Bytes()
}

// FormatSeccomp writes a profile in the form of linux.seccomp, with a line for each entry.
func FormatSeccomp(profile *specs.LinuxSeccomp) []byte {
	w := json.NewWriter(make([]byte, 0, 4096), "  ")
	encodeLinuxSeccomp(w, profile)
	return append(w.Bytes(), '\n')
}
