package config

import (
	"errors"
	"fmt"
	"strings"
)

// check refuses what contradicts itself on any machine.
func (c *Config) check() error {
	if c.CgroupRoot == "" {
		return &Error{c.Cause("cgroup-root"), errors.New("it is empty; the whole machine is /")}
	}
	if c.CgroupRoot == "/" && !c.CgroupsPerQoS && c.PodsEnforce != Nothing {
		return &Error{c.Cause("cgroup-root"), errors.New("with pods-enforce the workloads need a cgroup of their own: name one, as /machine, or set cgroups-per-qos")}
	}
	for _, p := range c.containers() {
		if p.path == "/" {
			return &Error{c.Cause(p.key), errors.New("the root of the hierarchy has no limits: name a cgroup below it")}
		}
	}
	return nil
}

// For gives the configuration for the driver that a machine has: with the
// driver's own defaults, and without what it does not support.
func (c Config) For(driver Driver) (*Config, error) {
	c.Driver = driver
	if driver == Systemd {
		if c.ResourceContainer != "" {
			return nil, &Error{c.Cause("resource-container"), ErrResourceContainer}
		}
		if !c.Given("system-container") {
			c.SystemContainer = "/system"
		}
		if !c.Given("kube-container") && (len(c.KubeReserved) > 0 || c.KubeEnforce != Nothing) {
			c.KubeContainer = "/kubernetes"
		}
	}
	for _, e := range []struct {
		enforce                Enforce
		path, key, needs, what string
	}{
		{c.SystemEnforce, c.SystemContainer, "system-reserved-enforce", "system-container", "system-reserved"},
		{c.KubeEnforce, c.KubeContainer, "kube-reserved-enforce", "kube-container", "kube-reserved"},
	} {
		reserved := c.SystemReserved
		if e.what == "kube-reserved" {
			reserved = c.KubeReserved
		}
		switch {
		case e.enforce == Nothing:
		case e.path == "":
			return nil, &Error{c.Cause(e.key), fmt.Errorf("there is no cgroup to enforce it on: set %s", e.needs)}
		case len(reserved) == 0:
			return nil, &Error{c.Cause(e.key), fmt.Errorf("there is nothing to enforce: set %s", e.what)}
		}
	}
	places := c.containers()
	if c.Workloads() != "/" {
		places = append(places, container{"cgroup-root", c.Workloads()})
	}
	for i, a := range places {
		for _, b := range places[:i] {
			if within(a.path, b.path) || within(b.path, a.path) {
				return nil, &Error{c.Cause(a.key), fmt.Errorf("%s overlaps with %s (%s), so usage in both would be counted twice", a.path, b.path, c.Cause(b.key))}
			}
		}
	}
	return &c, nil
}

type container struct{ key, path string }

func (c *Config) containers() []container {
	var list []container
	for _, p := range []container{{"system-container", c.SystemContainer}, {"kube-container", c.KubeContainer}, {"resource-container", c.ResourceContainer}} {
		if p.path != "" {
			list = append(list, p)
		}
	}
	return list
}

// ErrResourceContainer says why there is no resource container under systemd.
var ErrResourceContainer = errors.New("not under systemd, which has started the kubelet and placed it in the cgroup of its unit already; set Slice= in the unit instead, as Slice=kubernetes.slice")

// within reports whether a path is another or lies below it.
func within(path, above string) bool {
	return path == above || strings.HasPrefix(path, above+"/")
}

// Workloads is the cgroup whose limit is what is not reserved.
func (c *Config) Workloads() string {
	if !c.CgroupsPerQoS {
		return c.CgroupRoot
	}
	return strings.TrimSuffix(c.CgroupRoot, "/") + "/kubepods"
}
