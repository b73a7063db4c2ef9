package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/berth-runtime/berth/cmd/berth/internal/box/nat"
)

func (o *boxOptions) network(text string) error {
	switch text {
	case "none", "nat", "host":
		o.net, o.HostNet = text, text == "host"
		return nil
	case "bridge", "default", "slirp4netns", "pasta":
		return fmt.Errorf("%q is none of none, nat and host: nat is what comes closest", text)
	}
	return fmt.Errorf("%q is none of none, nat and host", text)
}

// makeNetwork prepares a network that reaches out, before the box is there.
func (o *boxOptions) makeNetwork() (err error) {
	switch {
	case o.net == "" && len(o.ports) > 0:
		o.net = "nat"
	case o.net == "host" && len(o.ports) > 0:
		return errors.New("-p: with --net host all its ports are the host's")
	case o.net == "none" && len(o.ports) > 0:
		return errors.New("-p: it takes --net nat")
	}
	if o.net != "nat" {
		return nil
	}
	if o.nat, o.Resolver, err = nat.New(o.ports); err != nil {
		return fmt.Errorf("--net nat: %w", err)
	}
	return nil
}

// connect brings it up, before the command begins.
func (o *boxOptions) connect(pid int) error {
	if o.nat == nil {
		return nil
	}
	defer o.nat.Settle()
	if err := o.nat.Connect(pid, os.Geteuid() != 0); err != nil {
		return fmt.Errorf("--net nat: %w", err)
	}
	return nil
}

func (o *boxOptions) closeNetwork() {
	if o.nat != nil {
		o.nat.Close()
	}
}

// networkInWords says what the box can reach.
func (o *boxOptions) networkInWords() string {
	switch {
	case o.HostNet:
		return "the host's"
	case o.nat == nil:
		return "loopback only"
	}
	text := "its own, which reaches out by " + o.nat.Program()
	for i := range o.ports {
		text += "; " + o.ports[i].String()
	}
	return text
}
