package containerd

import (
	"fmt"
	"strings"
)

// Config is what a test wants of a daemon.
type Config struct {
	Env []string
	// CRI, where it is not nil, gives the tables of CRI's configuration, in the form
	// of the daemon's release. Without it there is no CRI.
	CRI func(*Daemon) string
}

// text is the daemon's configuration. What a daemon would write outside of its
// own directory is turned off, or moved there.
func (d *Daemon) text() string {
	disabled := []string{"io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.devmapper"}
	version, tables, cri := 2, "", ""
	if d.Release.Modern {
		version = 3
		disabled = append(disabled, "io.containerd.nri.v1.nri", "io.containerd.snapshotter.v1.blockfile", "io.containerd.snapshotter.v1.erofs", "io.containerd.differ.v1.erofs",
			"io.containerd.tracing.processor.v1.otlp", "io.containerd.internal.v1.tracing")
		tables = fmt.Sprintf(`
[plugins."io.containerd.shim.v1.manager"]
  socket_dir = "%[1]s/s"
[plugins."io.containerd.image-verifier.v1.bindir"]
  bin_dir = "%[1]s/verifiers"
[plugins."io.containerd.internal.v1.opt"]
  path = "%[1]s/opt"
`, d.Dir)
	} else {
		disabled = append(disabled, "io.containerd.snapshotter.v1.aufs", "io.containerd.nri.v1.nri", "io.containerd.snapshotter.v1.blockfile",
			"io.containerd.tracing.processor.v1.otlp", "io.containerd.internal.v1.tracing")
		tables = fmt.Sprintf(`
[plugins."io.containerd.internal.v1.opt"]
  path = "%[1]s/opt"
`, d.Dir)
	}
	if d.config.CRI != nil {
		cri = d.config.CRI(d)
	} else {
		disabled = append(disabled, "io.containerd.grpc.v1.cri")
		if d.Release.Modern {
			disabled = append(disabled, "io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime", "io.containerd.podsandbox.controller.v1.podsandbox")
		}
	}
	return fmt.Sprintf(`version = %d
root = "%[2]s/root"
state = "%[2]s/state"
disabled_plugins = ["%[3]s"]
[grpc]
  address = "%[2]s/c.sock"
[ttrpc]
  address = "%[5]s"
[debug]
  level = "debug"
%[4]s%[6]s`, version, d.Dir, strings.Join(disabled, `", "`), tables, d.TTRPC, cri)
}
