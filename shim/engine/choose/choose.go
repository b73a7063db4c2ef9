package choose

import (
	"sync"

	"github.com/berth-runtime/berth/internal/settings"
	"github.com/berth-runtime/berth/shim/engine"
	"github.com/berth-runtime/berth/shim/engine/linked"
	"github.com/berth-runtime/berth/shim/engine/ociexec"
	"github.com/berth-runtime/berth/shim/internal/bundle/options"
	"github.com/berth-runtime/berth/shim/reaper"
)

// Engine gives the engine that a container's options ask for.
func Engine(o *options.Options, namespace string, r *reaper.Reaper, warn func(string)) (engine.Engine, error) {
	if o.BinaryName == "" {
		s, err := hostSettings(o)
		if err != nil {
			return nil, err
		}
		return linked.New(o.StateRoot(namespace), s, warn), nil
	}
	return ociexec.New(ociexec.Config{
		Binary: o.BinaryName, Root: o.StateRoot(namespace), SystemdCgroup: o.SystemdCgroup,
	}, r)
}

// hostSettings are the host's, with what the options say instead. The state of containerd's
// containers stays where the options have it: the host's root is that of the command line.
func hostSettings(o *options.Options) (settings.Settings, error) {
	s, err := settings.Read()
	switch {
	case o.SystemdCgroup:
		s.Driver = settings.Systemd
	case o.DriverSaid:
		s.Driver = settings.Cgroupfs
	}
	return s, err
}

// Transient is for a command that is gone at once, and may print nothing
// but its answer. The linked engine waits for its hooks itself: a reaper would
// take them from it.
func Transient(o *options.Options, namespace string) (engine.Engine, error) {
	if o.BinaryName == "" {
		return Engine(o, namespace, nil, func(string) {})
	}
	r, err := oneReaper()
	if err != nil {
		return nil, err
	}
	return Engine(o, namespace, r, func(string) {})
}

var oneReaper = sync.OnceValues(reaper.Start)
