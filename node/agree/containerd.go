package agree

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/berth-runtime/berth/internal/toml"
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

// Containerd reads the runtimes of containerd's configuration, with its drop-ins, by name. The file
// need not be there.
func Containerd(root string) ([]Runtime, error) {
	values := map[string]string{}
	if err := containerdValues(root, containerdFile, values, 0); err != nil {
		return nil, err
	}
	found := map[string]*Runtime{}
	for at, value := range values {
		keys := strings.Split(at, between)
		if len(keys) < 6 || keys[0] != "plugins" || !slices.Contains(plugins, keys[1]) || keys[2] != "containerd" || keys[3] != "runtimes" {
			continue
		}
		r := found[keys[4]]
		if r == nil {
			r = &Runtime{Name: keys[4]}
			found[keys[4]] = r
		}
		switch strings.Join(keys[5:], ".") {
		case "runtime_type":
			r.Type = value
		case "options.SystemdCgroup":
			is := value == "true"
			r.Systemd = &is
		case "options.ConfigPath":
			// Where this is, SystemdCgroup of the table does not count (docs/kubernetes.md).
			if is, ok := optionFile(root, value); ok {
				r.Systemd = &is
			}
		}
	}
	list := make([]Runtime, 0, len(found))
	for _, r := range found {
		list = append(list, *r)
	}
	slices.SortFunc(list, func(a, b Runtime) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// containerdValues reads a file and what it imports, later files over earlier ones.
func containerdValues(root, file string, values map[string]string, depth int) error {
	text, err := os.ReadFile(root + file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	here, err := tables(string(text))
	if err != nil {
		return &os.PathError{Op: "read", Path: file, Err: err}
	}
	for at, value := range here {
		values[at] = value
	}
	if depth > 8 {
		return nil // it imports itself
	}
	for pattern := range strings.SplitSeq(here["imports"], "\n") {
		if pattern == "" {
			continue
		}
		if !path.IsAbs(pattern) {
			pattern = path.Join(path.Dir(file), pattern)
		}
		names, err := filepath.Glob(root + pattern)
		if err != nil {
			return &os.PathError{Op: "import", Path: pattern, Err: err}
		}
		for _, name := range names {
			if err := containerdValues(root, strings.TrimPrefix(name, root), values, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// optionFile reads SystemdCgroup from the options of the shim in a file of their own.
func optionFile(root, file string) (is, ok bool) {
	text, err := os.ReadFile(root + file)
	if err != nil {
		return false, false
	}
	err = toml.Parse(string(text), func(key string, v toml.Value) error {
		if key != "SystemdCgroup" {
			return nil
		}
		ok = true
		return v.Bool(&is)
	})
	return is, ok && err == nil
}
