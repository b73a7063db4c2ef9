package container

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/internal/namespace"
	"github.com/berth-runtime/berth/internal/netlink"
	"golang.org/x/sys/unix"
)

// moveNetDevices moves the listed devices of the host into the container's
// network namespace, with their permanent addresses, and brings them up. They
// are never moved back: their namespace's end does that, however it comes.
func (m *maker) moveNetDevices() error {
	if len(m.plan.NetDevs) == 0 {
		return nil
	}
	netns, err := namespace.Open(m.child.Pid, "net")
	if err != nil {
		return fmt.Errorf("config.json: /linux/netDevices: %w", err)
	}
	defer unix.Close(netns)
	here, err := netlink.Open()
	if err != nil {
		return fmt.Errorf("config.json: /linux/netDevices: %w", err)
	}
	defer here.Close()
	there, err := netlink.OpenIn(netns)
	if err != nil {
		return fmt.Errorf("config.json: /linux/netDevices: %w", err)
	}
	defer there.Close()
	for i := range m.plan.NetDevs {
		d := &m.plan.NetDevs[i]
		if err := moveNetDevice(here, there, netns, d); err != nil {
			return fmt.Errorf("config.json: %s: move the network device %q: %w", d.At, d.Name, err)
		}
	}
	return nil
}

func moveNetDevice(here, there *netlink.Conn, netns int, d *plan.NetDevice) error {
	link, err := here.LinkByName(d.Name)
	if err != nil {
		if errors.Is(err, unix.ENODEV) {
			return errors.New("the host has no such device")
		}
		return err
	}
	name := d.NewName
	if name == "" {
		name = d.Name
	}
	// A name with %d is a template that the kernel fills, so it can't be taken.
	template := strings.Contains(name, "%d")
	if _, err := there.LinkByName(name); err == nil && !template {
		return fmt.Errorf("the container's network namespace has a device %q already", name)
	}
	addresses, err := here.Addresses(link.Index)
	if err != nil {
		return fmt.Errorf("read its addresses: %w", err)
	}
	if link.Up {
		// A device that is up can't be renamed (before Linux 6.2), and the move
		// takes it down anyway.
		if err := here.SetUp(link.Index, false); err != nil {
			return fmt.Errorf("bring it down: %w", err)
		}
	}
	before, err := there.Links()
	if err != nil {
		return fmt.Errorf("list the container's devices: %w", err)
	}
	if err := here.Move(link.Index, netns, name); err != nil {
		hint := ""
		switch {
		case errors.Is(err, unix.EINVAL), errors.Is(err, unix.EOPNOTSUPP):
			hint = " (devices that belong to a namespace, such as lo, bridges with ports or wireless ones, can't be moved)"
		case errors.Is(err, unix.EEXIST):
			hint = " (the name is taken there)"
		}
		if link.Up {
			_ = here.SetUp(link.Index, true)
		}
		return fmt.Errorf("%w%s", err, hint)
	}
	moved, err := newcomer(there, before)
	if err != nil {
		return fmt.Errorf("find it in the container: %w", err)
	}
	for _, a := range addresses {
		if !a.Permanent() {
			continue
		}
		if err := there.AddAddress(moved.Index, a); err != nil {
			return fmt.Errorf("restore its address: %w", err)
		}
	}
	if err := there.SetUp(moved.Index, true); err != nil {
		return fmt.Errorf("bring it up: %w", err)
	}
	return nil
}

// newcomer finds the device that was not there before: the kernel may have given
// it another index, and another name than was asked for.
func newcomer(there *netlink.Conn, before []netlink.Link) (netlink.Link, error) {
	now, err := there.Links()
	if err != nil {
		return netlink.Link{}, err
	}
	for _, l := range now {
		if !slices.ContainsFunc(before, func(b netlink.Link) bool { return b.Index == l.Index }) {
			return l, nil
		}
	}
	return netlink.Link{}, unix.ENODEV
}
