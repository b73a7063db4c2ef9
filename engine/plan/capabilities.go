package plan

import (
	"strings"

	"github.com/berth-runtime/berth/internal/caps"
)

// Restrict leaves out the capabilities that can't be granted, and says so: a container
// is not to fail for them (config.md, capabilities).
func (p *Process) Restrict(lacking caps.Set) []string {
	asked := (p.Bounding | p.Effective | p.Permitted | p.Inheritable | p.Ambient) & lacking
	if asked == 0 {
		return nil
	}
	p.Bounding &^= lacking
	p.Effective &^= lacking
	p.Permitted &^= lacking
	p.Inheritable &^= lacking
	p.Ambient &^= lacking
	return []string{p.At + "/capabilities: " + strings.Join(asked.Names(), ", ") + " can't be granted, as the runtime does not have it itself; it is left out"}
}
