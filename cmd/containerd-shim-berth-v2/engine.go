package main

import (
	"sync"

	"github.com/berth-runtime/berth/shim/engine"
	"github.com/berth-runtime/berth/shim/linked"
	"github.com/berth-runtime/berth/shim/ociexec"
	"github.com/berth-runtime/berth/shim/options"
	"github.com/berth-runtime/berth/shim/reaper"
)

// openEngine gives the engine that a container's options ask for.
func openEngine(o *options.Options, namespace string, r *reaper.Reaper, warn func(string)) (engine.Engine, error) {
	if o.BinaryName == "" {
		return linked.New(o.StateRoot(namespace), o.SystemdCgroup, warn), nil
	}
	return ociexec.New(ociexec.Config{
		Binary: o.BinaryName, Root: o.StateRoot(namespace), SystemdCgroup: o.SystemdCgroup,
	}, r)
}

// transientEngine is for a command that is gone at once, and may print nothing
// but its answer. The linked engine waits for its hooks itself: a reaper would
// take them from it.
func transientEngine(o *options.Options, namespace string) (engine.Engine, error) {
	if o.BinaryName == "" {
		return openEngine(o, namespace, nil, func(string) {})
	}
	r, err := oneReaper()
	if err != nil {
		return nil, err
	}
	return openEngine(o, namespace, r, func(string) {})
}

var oneReaper = sync.OnceValues(reaper.Start)
