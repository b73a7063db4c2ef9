package device

import (
	"fmt"

	"github.com/berth-runtime/berth/internal/sys"
)

// programName is how our program is known again among those of a cgroup, and
// what bpftool shows.
const programName = "berth_devices"

// Attach makes the v2 cgroup that dir is a descriptor of enforce the policy. A
// program that an earlier Attach left is replaced in one step; programs of
// others, such as systemd's, stay and must allow an access as well.
func (p Policy) Attach(dir int) error {
	program, err := sys.LoadCgroupDevice(programName, p.Program())
	if err != nil {
		return fmt.Errorf("load the device filter: %w", err)
	}
	defer program.Close()
	old, err := attached(dir)
	if err != nil {
		return err
	}
	defer closeAll(old)
	if len(old) == 0 {
		if err := sys.AttachCgroupDevice(dir, program); err != nil {
			return fmt.Errorf("attach the device filter to the cgroup: %w", err)
		}
		return nil
	}
	if err := sys.ReplaceCgroupDevice(dir, program, old[0]); err != nil {
		return fmt.Errorf("replace the device filter of the cgroup: %w", err)
	}
	// There is more than one only where something failed half-way before.
	for _, stale := range old[1:] {
		if err := sys.DetachCgroupDevice(dir, stale); err != nil {
			return fmt.Errorf("detach a left-over device filter from the cgroup: %w", err)
		}
	}
	return nil
}

// Detach takes our filter off the cgroup, if there is one.
func Detach(dir int) error {
	ours, err := attached(dir)
	if err != nil {
		return err
	}
	defer closeAll(ours)
	for _, program := range ours {
		if err := sys.DetachCgroupDevice(dir, program); err != nil {
			return fmt.Errorf("detach the device filter from the cgroup: %w", err)
		}
	}
	return nil
}

// attached gives our programs on the cgroup.
func attached(dir int) ([]sys.BPFProgram, error) {
	ids, err := sys.QueryCgroupDevice(dir)
	if err != nil {
		return nil, fmt.Errorf("list the device filters of the cgroup: %w", err)
	}
	var ours []sys.BPFProgram
	for _, id := range ids {
		program, err := sys.OpenBPFProgram(id)
		if err != nil {
			closeAll(ours)
			return nil, fmt.Errorf("open device filter %d of the cgroup: %w", id, err)
		}
		name, err := program.Name()
		if err != nil {
			program.Close()
			closeAll(ours)
			return nil, fmt.Errorf("read the name of device filter %d of the cgroup: %w", id, err)
		}
		if name != programName {
			program.Close()
			continue
		}
		ours = append(ours, program)
	}
	return ours, nil
}

func closeAll(programs []sys.BPFProgram) {
	for _, p := range programs {
		p.Close()
	}
}
