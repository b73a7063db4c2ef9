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

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/cgroup/systemd"
	"github.com/berth-runtime/berth/cmd/internal/cli"
	"github.com/berth-runtime/berth/engine/host"
	engineprogram "github.com/berth-runtime/berth/engine/program"
	"github.com/berth-runtime/berth/engine/view"
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
		Summary: "Show the version, the commit, and the implemented specification.",
		Help: "Also shows the features of this build and this machine. berth --version only prints the first lines;\n" +
			"berth features lists the build's features for programs.",
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
	id := buildSetting("vcs.revision")
	switch {
	case id == "":
		return "unknown"
	case buildSetting("vcs.modified") == "true":
		return id + "-dirty"
	}
	return id
}

// buildSetting is what the go command has noted of the build, "" for nothing.
func buildSetting(key string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == key {
				return s.Value
			}
		}
	}
	return ""
}

// builtWith tells how this program begins, as build/scripts/build notes it in tags.
func builtWith() string {
	tags := strings.Split(buildSetting("-tags"), ",")
	var has []string
	if slices.Contains(tags, "berth_entry") {
		has = append(has, "an entry point of its own")
	}
	if slices.Contains(tags, "berth_runtime") {
		has = append(has, "a shorter start of Go's runtime")
	}
	if buildSetting("CGO_ENABLED") == "1" {
		has = append(has, "cgo allowed (a program that links it is not confined)")
	}
	if len(has) == 0 {
		return "a plain go build: the same, with slower commands"
	}
	return strings.Join(has, ", ")
}

// printFeatures tells on the rest of a screen what there is.
func printFeatures() error {
	groups, err := cgroup.Detect()
	if err != nil {
		return err
	}
	h, err := host.Probe(groups)
	if err != nil {
		return err
	}
	f := view.Features(nil)
	yes := func(ok bool, text, otherwise string) string {
		if ok {
			return text
		}
		return otherwise
	}
	controllers := map[string]bool{}
	for _, hierarchy := range groups.Hierarchies() {
		for _, name := range hierarchy.Controllers {
			controllers[name] = true
		}
	}
	var uts unix.Utsname
	if err := unix.Uname(&uts); err != nil {
		return os.NewSyscallError("uname", err)
	}
	_, err = fmt.Printf("built for: %s/%s\nbuilt with: %s\nspecifications: %s to %s\nnamespaces: %s\nseccomp: %d actions, %d architectures\nkernel: %s\ncgroups: %s, with %s\nsystemd: %s\nLandlock: %s\n",
		runtime.GOOS, runtime.GOARCH+yes(engineprogram.Native, "", ", which has no init for containers: none can be made"), builtWith(), f.OCIVersionMin, f.OCIVersionMax, strings.Join(f.Linux.Namespaces, " "),
		len(f.Linux.Seccomp.Actions), len(f.Linux.Seccomp.Archs), unix.ByteSliceToString(uts.Release[:]),
		groups.Mode(), strings.Join(slices.Sorted(maps.Keys(controllers)), " "),
		yes(systemd.Booted(), "runs this machine", "does not run this machine"),
		yes(h.Landlock > 0, fmt.Sprintf("version %d", h.Landlock), "not in this kernel"))
	return err
}
