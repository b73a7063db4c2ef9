package main

import (
	"errors"

	"github.com/berth-runtime/berth/shim/engine"
	"github.com/berth-runtime/berth/shim/ociexec"
	"github.com/berth-runtime/berth/shim/options"
	"github.com/berth-runtime/berth/shim/reaper"
)

// openEngine gives the engine that a container's options ask for.
func openEngine(o *options.Options, namespace string, r *reaper.Reaper) (engine.Engine, error) {
	if o.BinaryName == "" {
		return nil, errors.New("no engine is linked into this shim: name a runtime's binary by the option BinaryName")
	}
	return ociexec.New(ociexec.Config{
		Binary: o.BinaryName, Root: o.StateRoot(namespace), SystemdCgroup: o.SystemdCgroup,
	}, r)
}

// transientEngine is for a command that is gone at once. It reaps only if it
// has to execute something.
func transientEngine(o *options.Options, namespace string) (engine.Engine, error) {
	r, err := reaper.Start()
	if err != nil {
		return nil, err
	}
	return openEngine(o, namespace, r)
}
