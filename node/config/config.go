package config

import (
	"fmt"
	"os"
	"time"

	"github.com/berth-runtime/berth/node/config/quantity"
	"github.com/berth-runtime/berth/node/config/resource"
	"github.com/berth-runtime/berth/node/config/yaml"
)

// DefaultFile is read where no other is named, and may be missing.
const DefaultFile = "/etc/berth-node/node.yaml"

// Config is what an operator wants of a node.
type Config struct {
	Driver        Driver
	CgroupRoot    string // in the notation of paths: /machine
	CgroupsPerQoS bool

	SystemReserved, KubeReserved, EvictionHard Amounts

	// The containers in the notation of paths; "" for none.
	SystemContainer, KubeContainer, ResourceContainer string

	SystemEnforce, KubeEnforce, PodsEnforce Enforce

	Protect    bool // reserved memory is kept from reclaim, too
	Properties Lasting
	// Eviction is what watch does where less is left than EvictionHard: Off or Kill.
	Eviction Mode
	// BerthParent is what is done about the parent in the settings of berth and its shim.
	BerthParent Mode
	Parameters  Mode
	Scores      map[string]Score
	ScoreMode   Mode

	ReclaimDeadline time.Duration
	ReclaimPressure quantity.Quantity
	Recheck         time.Duration
	Listen          string
	StateDir        string

	sources map[string]string // by key: "node.yaml:7", or "--key"
}

// Amount is a quantity with the place that it came from.
type Amount struct {
	quantity.Quantity
	Cause string
}

// Amounts are quantities by resource.
type Amounts map[resource.Name]Amount

// Score is an OOM score with the place that it came from.
type Score struct {
	Value int
	Cause string
}

// Driver is what creates cgroups.
type Driver string

// The drivers. Auto is systemd where that is the init system.
const (
	Auto     Driver = "auto"
	Systemd  Driver = "systemd"
	Cgroupfs Driver = "cgroupfs"
)

// Enforce is what of a reservation becomes a limit.
type Enforce string

// What can be enforced. CPUOnly leaves memory alone, whose limit kills.
const (
	Nothing Enforce = "false"
	All     Enforce = "true"
	CPUOnly Enforce = "cpu"
)

// Lasting is how long properties of units last.
type Lasting string

// How long properties last.
const (
	Runtime    Lasting = "runtime" // until the next boot
	Persistent Lasting = "persistent"
)

// Mode is what is done about values that are to hold.
type Mode string

// The modes.
const (
	Off   Mode = "off"
	Check Mode = "check"
	Set   Mode = "set"
	Kill  Mode = "kill"
)

// Override is a flag of the command line.
type Override struct{ Key, Value string }

// Error is a value that cannot be.
type Error struct {
	Cause string // "node.yaml:7: system-reserved.memory"
	Err   error
}

func (e *Error) Error() string { return e.Cause + ": " + e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// Load reads the file and applies the flags. With an empty name it is the default
// file, if that exists.
func Load(file string, overrides []Override) (*Config, error) {
	named := file != ""
	if !named {
		file = DefaultFile
	}
	text, err := os.ReadFile(file)
	if err != nil && (named || !os.IsNotExist(err)) {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	return Parse(file, string(text), overrides)
}

// Parse is Load of a text.
func Parse(file, text string, overrides []Override) (*Config, error) {
	c := &Config{sources: map[string]string{}, Scores: map[string]Score{}}
	for _, k := range Keys() {
		if err := k.set(c, "default of "+k.Name, flagNode(k, k.Default)); err != nil {
			return nil, &Error{"default of " + k.Name, err}
		}
	}
	doc, err := yaml.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for _, m := range doc.Members {
		place := fmt.Sprintf("%s:%d", file, m.Line)
		k := find(m.Key)
		if k == nil {
			return nil, &Error{place, fmt.Errorf("there is no key %.40s%s", m.Key, nearest(m.Key))}
		}
		if err := c.apply(k, place, m.Value, func(line int) string { return fmt.Sprintf("%s:%d", file, line) }); err != nil {
			return nil, err
		}
	}
	for _, o := range overrides {
		k := find(o.Key)
		if k == nil {
			return nil, fmt.Errorf("there is no option --%s", o.Key)
		}
		if err := c.apply(k, "--"+k.Name, flagNode(k, o.Value), nil); err != nil {
			return nil, err
		}
	}
	return c, c.check()
}

// apply sets one key from a value at a place.
func (c *Config) apply(k *Key, place string, v *yaml.Node, at func(line int) string) error {
	c.sources[k.Name] = place
	cause := place
	if at != nil {
		cause += ": " + k.Name
	}
	if v.Mapping != k.Map {
		if k.Map && v.Text == "" {
			v = &yaml.Node{Line: v.Line, Mapping: true} // "key:" alone is an empty mapping
		} else if k.Map {
			return &Error{cause, fmt.Errorf("%.40q is not a mapping: write %s", v.Text, k.Example)}
		} else {
			return &Error{cause, fmt.Errorf("it takes one value and no mapping: write %s", k.Example)}
		}
	}
	if !k.Map {
		if err := k.set(c, cause, v); err != nil {
			return &Error{cause, err}
		}
		return nil
	}
	if k.reset != nil {
		k.reset(c) // what is given replaces the whole, file or default
	}
	for _, m := range v.Members {
		cause := place + " " + m.Key
		if at != nil {
			cause = at(m.Line) + ": " + k.Name + "." + m.Key
		}
		if m.Value.Mapping {
			return &Error{cause, fmt.Errorf("it takes one value and no mapping: write %s", k.Example)}
		}
		if err := k.set(c, cause, &yaml.Node{Mapping: true, Members: []yaml.Member{m}}); err != nil {
			return &Error{cause, err}
		}
	}
	return nil
}

// Cause names the entry that a key's value came from.
func (c *Config) Cause(key string) string {
	place, ok := c.sources[key]
	switch {
	case !ok:
		return "default of " + key
	case place == "--"+key:
		return place
	}
	return place + ": " + key
}

// Given reports whether a key was given at all.
func (c *Config) Given(key string) bool {
	_, ok := c.sources[key]
	return ok
}
