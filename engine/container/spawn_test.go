package container

import "testing"

// A process is launched again beside the container's first one, where the cgroup that it was to go
// on in can hold none: see launchBesideFirst. What the Program was told of that one is forgotten.
func TestSpawnAgainElsewhere(t *testing.T) {
	s := spawn{Gate: -1, Root: -1, Group: "/sys/fs/cgroup/first"}
	told := func() (group, forks int) {
		s.inherit()
		s.number(s.Numbers())
		return s.Facts.Group, s.Forks
	}
	if group, forks := told(); group <= s.Facts.Report || forks != 1 {
		t.Errorf("with a group: descriptor %d, %d forks", group, forks)
	}
	s.Group = ""
	if group, forks := told(); group != 0 || forks != 0 {
		t.Errorf("without one: descriptor %d, %d forks", group, forks)
	}
}
