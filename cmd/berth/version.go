package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/berth-runtime/berth/container"
	"github.com/berth-runtime/berth/host"
	"github.com/berth-runtime/berth/internal/cli"
	"github.com/berth-runtime/berth/internal/json"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// version is the release; the linker may set it and the commit (-X).
var (
	version = "0.1.0-dev"
	commit  = ""
)

func (p *program) versionCommand() *cli.Command {
	var asJSON bool
	c := &cli.Command{
		Summary: "Tell the version, the commit, and the specification that is implemented.",
		Help: "And, in words, what this build and this machine have to offer. berth --version tells the first lines only;\n" +
			"berth features has all that the build can do, for programs.",
		Run: func([]string) error {
			if asJSON {
				return printJSON(func(w *json.Writer) {
					w.Object()
					w.Key("version").String(version)
					w.Key("commit").String(commitID())
					w.Key("spec").String(specs.Version)
					w.Key("go").String(runtime.Version())
					w.Key("platform").String(runtime.GOOS + "/" + runtime.GOARCH)
					w.End()
				})
			}
			if err := p.printVersion(); err != nil {
				return err
			}
			return printFeatures()
		},
	}
	jsonFlag(&c.Flags, &asJSON)
	return c
}

// printVersion keeps to the form that Docker parses: a first line with a name and
// the version, then keys. containerd wants the first word to be runc where the
// program is called so.
func (p *program) printVersion() error {
	name := "berth"
	if filepath.Base(os.Args[0]) == "runc" {
		name = "runc"
	}
	_, err := fmt.Printf("%s version %s\ncommit: %s\nspec: %s\ngo: %s\n", name, version, commitID(), specs.Version, runtime.Version())
	return err
}

func commitID() string {
	if commit != "" {
		return commit
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value
			}
		}
	}
	return "unknown"
}

// printFeatures tells on the rest of a screen what there is.
func printFeatures() error {
	h, err := host.Probe()
	if err != nil {
		return err
	}
	f := container.Features(nil)
	yes := func(ok bool, text, otherwise string) string {
		if ok {
			return text
		}
		return otherwise
	}
	controllers := map[string]bool{}
	for _, hierarchy := range h.Cgroups.Hierarchies() {
		for _, name := range hierarchy.Controllers {
			controllers[name] = true
		}
	}
	var uts unix.Utsname
	if err := unix.Uname(&uts); err != nil {
		return os.NewSyscallError("uname", err)
	}
	_, systemd := os.Stat("/run/systemd/system")
	_, err = fmt.Printf("built for: %s/%s\nspecifications: %s to %s\nnamespaces: %s\nseccomp: %d actions, %d architectures\nkernel: %s\ncgroups: %s, with %s\nsystemd: %s\nLandlock: %s\n",
		runtime.GOOS, runtime.GOARCH, f.OCIVersionMin, f.OCIVersionMax, strings.Join(f.Linux.Namespaces, " "),
		len(f.Linux.Seccomp.Actions), len(f.Linux.Seccomp.Archs), unix.ByteSliceToString(uts.Release[:]),
		h.Cgroups.Mode(), strings.Join(slices.Sorted(maps.Keys(controllers)), " "),
		yes(systemd == nil, "runs this machine", "does not run this machine"),
		yes(h.Landlock > 0, fmt.Sprintf("version %d", h.Landlock), "not in this kernel"))
	return err
}
