package container

import (
	"github.com/berth-runtime/berth/internal/json"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// Paused is the status that clients expect beyond those of the specification.
const Paused specs.ContainerState = "paused"

// State is a container as it is now.
type State struct {
	Record
	Status specs.ContainerState
}

// State looks at the container.
func (c *Container) State() State {
	s := State{Record: c.Record, Status: c.status()}
	if s.Status == specs.StateStopped {
		s.Pid = 0
	}
	return s
}

func (c *Container) status() specs.ContainerState {
	switch {
	case c.Pid == 0:
		return specs.StateCreating
	case !c.Alive():
		return specs.StateStopped
	case c.frozen() && c.paused(): // also before its start, which it would not hear of
		return Paused
	case c.atGate():
		return specs.StateCreated
	}
	return specs.StateRunning
}

// frozen asks the files on record: to find the cgroup's hierarchies takes longer
// than all else that state does.
func (c *Container) frozen() bool {
	if len(c.Cgroup.Freezers) > 0 {
		if frozen, err := frozenBy(c.Cgroup.Freezers); err == nil {
			return frozen
		}
	}
	g, err := c.OpenGroup()
	if err != nil || g == nil {
		return false
	}
	defer g.Close()
	frozen, err := g.Frozen()
	return err == nil && frozen
}

// OCI renders the state as the runtime specification has it, which is what hooks
// and seccomp agents are given.
func (s *State) OCI() []byte {
	w := json.NewWriter(make([]byte, 0, 512), "")
	w.Object()
	s.common(w)
	s.annotations(w)
	w.End()
	return w.Bytes()
}

func (s *State) common(w *json.Writer) {
	w.Key("ociVersion").String(s.OCIVersion)
	w.Key("id").String(s.ID)
	w.Key("status").String(string(s.Status))
	w.Key("pid").Int(int64(s.Pid))
	w.Key("bundle").String(s.Bundle)
}

func (s *State) annotations(w *json.Writer) {
	if len(s.Annotations) == 0 {
		return
	}
	w.Key("annotations").Object()
	for _, k := range sortedKeys(s.Annotations) {
		w.Key(k).String(s.Annotations[k])
	}
	w.End()
}

// JSON writes the state with what clients of `state` and `list` read besides.
func (s *State) JSON(w *json.Writer) {
	w.Object()
	s.common(w)
	w.Key("rootfs").String(s.Rootfs)
	w.Key("created").Time(s.Created)
	s.annotations(w)
	w.Key("owner").String(s.OwnerName())
	w.End()
}

// NoteEnd puts on record how the first process ended, for who keeps the container.
func (c *Container) NoteEnd(status unix.WaitStatus) error {
	c.Ended = &status
	return c.save()
}
