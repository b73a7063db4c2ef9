package agree

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// Runtime is one of those that containerd gives to pods.
type Runtime struct {
	Name string
	Type string
	// Systemd is whether it makes units; nil where nothing is said of it.
	Systemd *bool
}

// containerdFile is where containerd's configuration is.
const containerdFile = "/etc/containerd/config.toml"

// plugins are the names that containerd 2 and 1 have for what runs pods.
var plugins = []string{"io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri"}

// containerdConfig is what is read of a file of its configuration.
type containerdConfig struct {
	Imports []string
	Plugins map[string]struct {
		Containerd struct {
			Runtimes map[string]struct {
				Type    string `toml:"runtime_type"`
				Options struct {
					SystemdCgroup *bool
					ConfigPath    string
				}
			}
		}
	}
}

// Containerd reads the runtimes of containerd's configuration, with its drop-ins, by name. The file
// need not be there.
func Containerd(root string) ([]Runtime, error) {
	found := map[string]*Runtime{}
	if err := readContainerd(root, containerdFile, found, 0); err != nil {
		return nil, err
	}
	list := make([]Runtime, 0, len(found))
	for _, r := range found {
		list = append(list, *r)
	}
	slices.SortFunc(list, func(a, b Runtime) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// readContainerd reads a file, and then what it imports over it.
func readContainerd(root, file string, found map[string]*Runtime, depth int) error {
	text, err := os.ReadFile(root + file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var c containerdConfig
	if err := toml.Unmarshal(text, &c); err != nil {
		return &os.PathError{Op: "read", Path: file, Err: err}
	}
	for _, plugin := range plugins {
		for name, runtime := range c.Plugins[plugin].Containerd.Runtimes {
			r := found[name]
			if r == nil {
				r = &Runtime{Name: name}
				found[name] = r
			}
			if runtime.Type != "" {
				r.Type = runtime.Type
			}
			if is := runtime.Options.SystemdCgroup; is != nil {
				r.Systemd = is
			}
			// Where this is, SystemdCgroup of the table does not count (docs/kubernetes.md).
			if is := optionFile(root, runtime.Options.ConfigPath); is != nil {
				r.Systemd = is
			}
		}
	}
	if depth > 8 {
		return nil // it imports itself
	}
	for _, pattern := range c.Imports {
		if !path.IsAbs(pattern) {
			pattern = path.Join(path.Dir(file), pattern)
		}
		names, err := filepath.Glob(root + pattern)
		if err != nil {
			return &os.PathError{Op: "import", Path: pattern, Err: err}
		}
		for _, name := range names {
			if err := readContainerd(root, strings.TrimPrefix(name, root), found, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// optionFile reads SystemdCgroup from the options of the shim in a file of their own; nil where it
// says nothing of it.
func optionFile(root, file string) *bool {
	if file == "" {
		return nil
	}
	text, err := os.ReadFile(root + file)
	if err != nil {
		return nil
	}
	var options struct{ SystemdCgroup *bool }
	if toml.Unmarshal(text, &options) != nil {
		return nil
	}
	return options.SystemdCgroup
}
