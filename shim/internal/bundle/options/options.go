package options

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/berth-runtime/berth/internal/json"
	"github.com/berth-runtime/berth/internal/toml"
	"github.com/berth-runtime/berth/shim/internal/bundle"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
)

// Groupings: how many containers share a shim.
const (
	PerContainer = "container"
	PerPod       = "pod"
	PerNamespace = "namespace"
)

// Options are the options of a container, whichever way they came.
type Options struct {
	wire.RuncOptions
	Grouping string
	// DriverSaid says that SystemdCgroup is what the client has said, be it false.
	// runc's message has no way not to say it.
	DriverSaid bool
	// Keeper asks for a keeper of the shim.
	Keeper bool
}

// Parse reads options of any type that is understood; nil are the defaults.
func Parse(any *wire.Any) (*Options, error) {
	o := new(Options)
	if any == nil || any.TypeURL == "" && len(any.Value) == 0 {
		return o, nil
	}
	var err error
	switch {
	case any.Is(wire.RuncOptionsURL):
		o.DriverSaid = true
		err = wire.Unmarshal(any.Value, &o.RuncOptions)
	case any.Is(wire.BerthOptionsURL):
		var own wire.BerthOptions
		if err = wire.Unmarshal(any.Value, &own); err == nil {
			o.Grouping = own.Grouping
			if own.Runc != nil {
				o.RuncOptions, o.DriverSaid = *own.Runc, true
			}
		}
	case any.Is(wire.RuntimeOptionsURL):
		var table wire.RuntimeOptions
		if err = wire.Unmarshal(any.Value, &table); err == nil {
			err = o.readTable(&table)
		}
	default:
		return nil, fmt.Errorf("runtime options of type %q are not understood: use %s, %s or %s",
			any.TypeURL, wire.RuncOptionsURL, wire.BerthOptionsURL, wire.RuntimeOptionsURL)
	}
	if err != nil {
		return nil, fmt.Errorf("runtime options of type %s: %w", any.TypeURL, err)
	}
	switch o.Grouping {
	case "", PerContainer, PerPod, PerNamespace:
	default:
		return nil, fmt.Errorf("option Grouping is %q: use %q, %q or %q", o.Grouping, PerContainer, PerPod, PerNamespace)
	}
	return o, nil
}

func (o *Options) readTable(table *wire.RuntimeOptions) error {
	body := table.ConfigBody
	if table.ConfigPath != "" {
		var err error
		if body, err = os.ReadFile(table.ConfigPath); err != nil {
			return fmt.Errorf("config_path: %w", err)
		}
	}
	return toml.Parse(string(body), o.set)
}

// set sets the option that a table's key names.
func (o *Options) set(key string, v toml.Value) error {
	switch key {
	case "NoPivotRoot":
		return v.Bool(&o.NoPivotRoot)
	case "NoNewKeyring":
		return v.Bool(&o.NoNewKeyring)
	case "ShimCgroup":
		return v.String(&o.ShimCgroup)
	case "IoUid":
		return v.Uint32(&o.IoUID)
	case "IoGid":
		return v.Uint32(&o.IoGID)
	case "BinaryName":
		return v.String(&o.BinaryName)
	case "Root":
		return v.String(&o.Root)
	case "SystemdCgroup":
		o.DriverSaid = true
		return v.Bool(&o.SystemdCgroup)
	case "CriuImagePath":
		return v.String(&o.CriuImagePath)
	case "CriuWorkPath":
		return v.String(&o.CriuWorkPath)
	case "Keeper":
		return v.Bool(&o.Keeper)
	case "Grouping":
		return v.String(&o.Grouping)
	case "TypeUrl", "ConfigPath", "ConfigBody", "CriuPath", "TaskApiAddress", "TaskApiVersion":
		// CRI's own, or of no effect any more, and in tables that are in use.
		return nil
	}
	return fmt.Errorf("option %q is not known", key)
}

// StateRoot is where an engine keeps the containers of a namespace.
func (o *Options) StateRoot(namespace string) string {
	root := o.Root
	switch {
	case root != "":
	case o.BinaryName != "":
		root = "/run/containerd/runc"
	default:
		root = "/run/containerd/berth"
	}
	return filepath.Join(root, namespace)
}

// Handover writes all options down for another program of this process.
func (o *Options) Handover() *wire.HandoverOptions {
	return &wire.HandoverOptions{Runc: &o.RuncOptions, Grouping: o.Grouping, DriverSaid: o.DriverSaid}
}

// TakeOver gives the options that Handover has written down.
func TakeOver(h *wire.HandoverOptions) *Options {
	o := new(Options)
	if h == nil {
		return o
	}
	if h.Runc != nil {
		o.RuncOptions = *h.Runc
	}
	o.Grouping, o.DriverSaid = h.Grouping, h.DriverSaid
	return o
}

// file is where a bundle keeps its options. runc's shim has one of that name.
const file = "options.json"

// Save writes what a later delete needs, or the sandbox that has no other way to
// learn its options, into a bundle. What a start has written is not written again
// by a create with the same options: to make a file takes longer than to read one.
func (o *Options) Save(dir string) error {
	w := json.NewWriter(nil, "").Object()
	w.Key("binary_name").String(o.BinaryName)
	w.Key("root").String(o.Root)
	for _, f := range o.flags() {
		w.Key(f.key).Bool(*f.set)
	}
	w.End()
	if there, err := os.ReadFile(filepath.Join(dir, file)); err == nil && bytes.Equal(there, w.Bytes()) {
		return nil
	}
	return bundle.Write(dir, file, w.Bytes())
}

type flag struct {
	key string
	set *bool
}

// flags are the options that a file keeps and that are set or not.
func (o *Options) flags() []flag {
	return []flag{
		{"systemd_cgroup", &o.SystemdCgroup}, {"no_pivot_root", &o.NoPivotRoot}, {"no_new_keyring", &o.NoNewKeyring},
	}
}

// Load reads what Save wrote; of a bundle without it, the error wraps
// os.ErrNotExist.
func Load(dir string) (*Options, error) {
	path := filepath.Join(dir, file)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	o := new(Options)
	d := json.NewDecoder(text)
	for d.Object(); d.Next(); {
		switch d.Key() {
		case "binary_name":
			o.BinaryName = d.String()
		case "root":
			o.Root = d.String()
		default:
			for _, f := range o.flags() {
				if d.Key() == f.key {
					*f.set = d.Bool()
				}
			}
		}
	}
	if err := d.Close(); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return o, nil
}
