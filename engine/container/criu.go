package container

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/berth-runtime/berth/engine/criu"
	"github.com/berth-runtime/berth/engine/plan"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// CriuOptions are what checkpoint and restore both tell criu.
type CriuOptions struct {
	// Criu is the program, "" for the one in PATH.
	Criu string
	// Images is the directory of the checkpoint, Work that of criu's log and other
	// files of the moment; "" for Images.
	Images, Work    string
	TCPEstablished  bool
	TCPClose        bool
	ExternalSockets bool
	ShellJob        bool
	FileLocks       bool
	LinkRemap       bool
	LazyPages       bool
	AutoDedup       bool
	// EmptyNamespaces are types of namespaces whose content is left out.
	EmptyNamespaces []string
	// CgroupMode is soft, full, strict or ignore; "" for soft.
	CgroupMode      string
	LSMProfile      string // TYPE:NAME
	LSMMountContext string
}

// options translates what both have in common.
func (o *CriuOptions) options(f *criuFolders) (*criu.Options, error) {
	c := &criu.Options{
		LogFile:        filepath.Base(f.log),
		TCPEstablished: o.TCPEstablished, TCPClose: o.TCPClose, ExternalSockets: o.ExternalSockets, ShellJob: o.ShellJob,
		FileLocks: o.FileLocks, LinkRemap: o.LinkRemap, LazyPages: o.LazyPages, AutoDedup: o.AutoDedup,
		LSMProfile: o.LSMProfile, LSMMountContext: o.LSMMountContext,
	}
	switch o.CgroupMode {
	case "", "soft":
		c.CgroupMode = criu.CgroupSoft
	case "full":
		c.CgroupMode = criu.CgroupFull
	case "strict":
		c.CgroupMode = criu.CgroupStrict
	case "ignore":
		c.CgroupMode = criu.CgroupIgnore
	default:
		return nil, fmt.Errorf("--manage-cgroups-mode %q: it is soft, full, strict or ignore", o.CgroupMode)
	}
	for _, name := range o.EmptyNamespaces {
		// criu can leave no other one empty.
		if name != string(specs.NetworkNamespace) {
			return nil, fmt.Errorf("--empty-ns %q: only a network namespace can be left empty", name)
		}
		c.EmptyNamespaces |= unix.CLONE_NEWNET
	}
	// iptables is not everywhere, and without open connections there is nothing
	// that packets could harm meanwhile.
	if _, err := exec.LookPath("iptables-restore"); err != nil {
		c.NetworkLock = criu.LockNothing
		if o.TCPEstablished {
			c.NetworkLock = criu.LockByNFTables
		}
	}
	return c, nil
}

// wantRoot refuses what criu would do half of without rights.
func wantRoot(verb string) error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("%s needs root: criu does things that an ordinary user may not", verb)
	}
	return nil
}

// old names an option that a criu does not know. It would ignore it silently.
func (o *CriuOptions) old(v criu.Version) error {
	for _, need := range []struct {
		set          bool
		flag         string
		major, minor int
	}{
		{o.LSMMountContext != "", "--lsm-mount-context", 3, 16},
		{o.LSMProfile != "", "--lsm-profile", 3, 16},
		{o.LazyPages, "--lazy-pages", 3, 5},
		{o.TCPClose, "--tcp-close", 3, 9},
	} {
		if need.set && v.Before(need.major, need.minor) {
			return fmt.Errorf("%s needs criu %d.%d or later, and this one is %s", need.flag, need.major, need.minor, v)
		}
	}
	return nil
}

// externalNamespace is the name by which criu knows a namespace that is not the
// container's own to write down, "" for one that criu can't treat like that.
func externalNamespace(n *plan.Namespace) (file, name string) {
	switch n.Type {
	case specs.NetworkNamespace:
		return "net", "extRootNetNS"
	case specs.PIDNamespace:
		return "pid", "extRootPidNS"
	}
	return "", ""
}

// refuseForCriu names what of a container criu would lose, or fail at late.
func refuseForCriu(p *plan.Plan) error {
	for i := range p.Mounts {
		if m := &p.Mounts[i]; m.IDMap != nil {
			return fmt.Errorf("config.json: %s: criu can't restore an idmapped mount", m.At)
		}
	}
	if p.Process.Landlock != nil {
		return fmt.Errorf("config.json: %s: criu can't restore Landlock rules, and the processes would be free of them", p.Process.Landlock.Rules[0].At)
	}
	if p.NoPivot && p.Namespace(specs.MountNamespace) != nil {
		return errors.New("the container was created with --no-pivot, which criu can't restore")
	}
	return nil
}

// standsFor names a descriptor for the image file descriptors.json, "" for one
// that the container can have by itself.
const descriptorsFile = "descriptors.json"

func isInheritable(key string) bool {
	return strings.HasPrefix(key, "pipe:[") || strings.HasPrefix(key, "file[")
}
