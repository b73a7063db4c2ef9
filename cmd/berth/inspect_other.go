package main

import (
	"fmt"
	"strings"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/internal/escape"
	"github.com/berth-runtime/berth/internal/json"
	"github.com/berth-runtime/berth/node/inventory"
)

// otherNamed finds a running container of another engine by its id, by the beginning of that, or as
// top calls it; nil if there is none, or several.
func (p *program) otherNamed(name string) *inventory.Container {
	host, err := cgroup.Detect()
	if err != nil {
		return nil
	}
	list, err := p.others(host)
	if err != nil {
		return nil
	}
	var found *inventory.Container
	for i := range list {
		c := &list[i]
		if c.ID == name || c.Name() == name {
			return c
		}
		if len(name) >= 4 && strings.HasPrefix(c.ID, name) {
			if found != nil {
				return nil
			}
			found = c
		}
	}
	return found
}

// asks is where each engine tells the rest.
var asks = map[inventory.Maker]string{inventory.Docker: "docker inspect", inventory.Podman: "podman inspect", inventory.Containerd: "ctr container info",
	inventory.CRIO: "crictl inspect", inventory.Kubernetes: "crictl inspect", inventory.Nspawn: "machinectl status", inventory.LXC: "lxc-info -n",
	inventory.Runc: "runc state", inventory.Crun: "crun state", inventory.Berth: "berth inspect"}

// otherText says what is known of a container that this state directory has no record of.
func otherText(c *inventory.Container) []byte {
	var b strings.Builder
	line := func(key, value string) {
		if value != "" {
			fmt.Fprintf(&b, "  %-8s %s\n", key, escape.Line(value))
		}
	}
	fmt.Fprintf(&b, "%s is running, and was created by %s\n", escape.Line(c.ID), c.Maker)
	line("runtime", c.Runtime)
	line("pod", c.Pod)
	line("cgroup", c.Cgroup)
	line("unit", c.Unit())
	line("limits", "berth cgroup get "+c.Cgroup)
	if ask := asks[c.Maker]; ask != "" {
		line("more", ask+" "+c.ID)
	}
	return []byte(b.String())
}

func otherJSON(c *inventory.Container) []byte {
	w := json.NewWriter(nil, "  ")
	w.Object()
	w.Key("id").String(c.ID)
	w.Key("maker").String(string(c.Maker))
	for _, pair := range [][2]string{{"runtime", c.Runtime}, {"pod", c.Pod}, {"cgroup", c.Cgroup}, {"unit", c.Unit()}} {
		if pair[1] != "" {
			w.Key(pair[0]).String(pair[1])
		}
	}
	w.End()
	return append(w.Bytes(), '\n')
}
