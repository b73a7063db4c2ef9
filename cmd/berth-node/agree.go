package main

import (
	"context"
	"errors"
	"os"

	"github.com/berth-runtime/berth/cmd/internal/cli"
	"github.com/berth-runtime/berth/internal/escape"
	"github.com/berth-runtime/berth/node/agree"
	"github.com/berth-runtime/berth/node/show"
)

// errDiffer is the exit status of doctor, which has said all already.
var errDiffer = errors.New("")

func doctorCommand() *cli.Command {
	s := &settings{}
	var asJSON bool
	c := s.command("Check whether the programs of this node agree.", `Compares the plan with what the kubelet (its --config file, drop-ins and options, or kubeadm's
file), containerd, Docker and berth are configured to do: what creates cgroups, where the
workloads are, what is reserved, and who enforces it. Each difference is one line with what to
change. The exit status is 0 if there is none. berth doctor --node runs it.`, []string{"berth-node doctor", "berth-node doctor --json"}, func(ctx context.Context) error {
		m, p, err := s.look(ctx)
		if err != nil {
			return err
		}
		r := agree.Compare(m.Root, p)
		text := []byte(r.Text(escape.Message))
		if asJSON {
			if text, err = show.AgreementJSON(r); err != nil {
				return err
			}
		}
		if _, err := os.Stdout.Write(text); err != nil {
			return err
		}
		if len(r.Differences) > 0 {
			return errDiffer
		}
		return nil
	})
	c.Flags.Bool(&asJSON, "json", "", "write JSON")
	return c
}

func kubeletConfigCommand() *cli.Command {
	s := &settings{}
	var containerd bool
	c := s.command("Print the kubelet's and containerd's configuration that match the plan.", `Prints a KubeletConfiguration with the cgroup driver, the cgroups, the reservations, the
eviction thresholds and what the kubelet is to enforce, or with --containerd the drop-in that
makes containerd use the same driver. pods-enforce decides who limits kubepods: the kubelet if
it is false, otherwise berth-node. It changes nothing.`, []string{"berth-node kubelet-config > /etc/kubernetes/kubelet.conf.d/20-berth.conf", "berth-node kubelet-config --containerd > /etc/containerd/conf.d/20-berth.toml"}, func(ctx context.Context) error {
		_, p, err := s.look(ctx)
		if err != nil {
			return err
		}
		text := agree.ContainerdTOML(p)
		if !containerd {
			if text, err = agree.YAML(p); err != nil {
				return err
			}
		}
		_, err = os.Stdout.Write(text)
		return err
	})
	c.Flags.Bool(&containerd, "containerd", "", "print containerd's drop-in instead")
	return c
}
