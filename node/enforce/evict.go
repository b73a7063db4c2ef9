package enforce

import (
	"fmt"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/node/machine"
)

// Kill ends all processes of a container's cgroup. The cgroup is its runtime's, which removes it
// when it learns of the end; so it has to be forced.
func Kill(m *machine.Machine, path string) error {
	if m.Root != "" {
		return fmt.Errorf("kill %s: the processes of %s are none of this machine", path, m.Root)
	}
	g, err := m.Cgroups.Open(path, cgroup.Force())
	if err != nil {
		return err
	}
	defer g.Close()
	return g.Kill()
}
