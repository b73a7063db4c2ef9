package agree

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Kubelet is the part of a KubeletConfiguration (kubelet.config.k8s.io/v1beta1) that a node agent
// has a say in.
type Kubelet struct {
	APIVersion             string            `yaml:"apiVersion"`
	Kind                   string            `yaml:"kind"`
	CgroupDriver           string            `yaml:"cgroupDriver,omitempty"`
	CgroupRoot             string            `yaml:"cgroupRoot,omitempty"`
	CgroupsPerQOS          *bool             `yaml:"cgroupsPerQOS,omitempty"`
	EnforceNodeAllocatable []string          `yaml:"enforceNodeAllocatable"`
	SystemReserved         map[string]string `yaml:"systemReserved,omitempty"`
	SystemReservedCgroup   string            `yaml:"systemReservedCgroup,omitempty"`
	KubeReserved           map[string]string `yaml:"kubeReserved,omitempty"`
	KubeReservedCgroup     string            `yaml:"kubeReservedCgroup,omitempty"`
	EvictionHard           map[string]string `yaml:"evictionHard,omitempty"`

	// File is where it was read from.
	File string `yaml:"-"`
}

// kubeadmFile is where kubeadm puts the configuration, and so where that of a kubelet that does not
// run is looked for.
const kubeadmFile = "/var/lib/kubelet/config.yaml"

// ReadKubelet reads the configuration of the kubelet with this pid, by its command line: the file,
// then the drop-ins, then the options over both. Without a kubelet (pid 0) it is kubeadm's file,
// and nil if there is none.
func ReadKubelet(root string, pid int) (*Kubelet, error) {
	var options map[string]string
	file := kubeadmFile
	if pid != 0 {
		text, err := os.ReadFile(fmt.Sprintf("%s/proc/%d/cmdline", root, pid))
		if err != nil {
			return nil, fmt.Errorf("read the command line of the kubelet: %w", err)
		}
		options = optionsOf(strings.Split(string(text), "\x00"))
		file = options["config"]
	}
	k := &Kubelet{File: "its command line"}
	if file != "" {
		text, err := os.ReadFile(root + file)
		if pid == 0 && errors.Is(err, os.ErrNotExist) {
			return nil, nil
		}
		if err == nil {
			err = yaml.Unmarshal(text, k)
		}
		if err != nil {
			return nil, fmt.Errorf("read the configuration of the kubelet (%s): %w", file, err)
		}
		k.File = file
	}
	if dir := options["config-dir"]; dir != "" {
		names, err := filepath.Glob(root + dir + "/*.conf") // in the order of their names
		if err != nil {
			return nil, fmt.Errorf("read the drop-ins of the kubelet (%s): %w", dir, err)
		}
		if k.EvictionHard == nil {
			// The kubelet fills in the defaults of its --config file before it merges drop-ins.
			k.EvictionHard = defaultEviction()
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err == nil {
				// Lists are replaced, and maps merged: as the kubelet does (KEP-3983).
				err = yaml.Unmarshal(text, k)
			}
			if err != nil {
				return nil, fmt.Errorf("read a drop-in of the kubelet (%s): %w", strings.TrimPrefix(name, root), err)
			}
		}
	}
	k.override(options)
	return k, nil
}

// optionsOf reads a command line: --name=value, --name value, or --name alone for true.
func optionsOf(args []string) map[string]string {
	options := map[string]string{}
	for i := 1; i < len(args); i++ {
		name, is := strings.CutPrefix(args[i], "--")
		if !is {
			continue
		}
		name, value, given := strings.Cut(name, "=")
		if !given {
			value = "true"
			if i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") && args[i+1] != "" {
				value = args[i+1]
			}
		}
		options[name] = value
	}
	return options
}

// override applies the options that the kubelet has for these entries: they count more than files.
func (k *Kubelet) override(options map[string]string) {
	for name, field := range map[string]*string{"cgroup-driver": &k.CgroupDriver, "cgroup-root": &k.CgroupRoot,
		"system-reserved-cgroup": &k.SystemReservedCgroup, "kube-reserved-cgroup": &k.KubeReservedCgroup} {
		if value, ok := options[name]; ok {
			*field = value
		}
	}
	for name, field := range map[string]*map[string]string{"system-reserved": &k.SystemReserved, "kube-reserved": &k.KubeReserved, "eviction-hard": &k.EvictionHard} {
		value, ok := options[name]
		if !ok {
			continue
		}
		*field = map[string]string{}
		for pair := range strings.SplitSeq(value, ",") {
			if at := strings.IndexAny(pair, "=<"); at > 0 {
				(*field)[pair[:at]] = pair[at+1:]
			}
		}
	}
	if value, ok := options["cgroups-per-qos"]; ok {
		is := value == "true"
		k.CgroupsPerQOS = &is
	}
	if value, ok := options["enforce-node-allocatable"]; ok {
		k.EnforceNodeAllocatable = []string{}
		if value != "" {
			k.EnforceNodeAllocatable = strings.Split(value, ",")
		}
	}
}

// qos is whether pods are in cgroups by QoS level, which is the default.
func (k *Kubelet) qos() bool { return k.CgroupsPerQOS == nil || *k.CgroupsPerQOS }

// enforces is whether the kubelet limits something itself; pods by default.
func (k *Kubelet) enforces(what string) bool {
	if k.EnforceNodeAllocatable == nil {
		return what == "pods" && k.qos()
	}
	for _, word := range k.EnforceNodeAllocatable {
		// system-reserved-compressible is the processor's part alone.
		if word == what || strings.TrimSuffix(word, "-compressible") == what {
			return true
		}
	}
	return false
}

// eviction are the thresholds in effect: the kubelet's defaults where none are given.
func (k *Kubelet) eviction() map[string]string {
	if k.EvictionHard != nil {
		return k.EvictionHard
	}
	return defaultEviction()
}

// defaultEviction are the thresholds of a kubelet that is given none. One whose --config file or
// options give it some has none of these any more; drop-ins add to them.
func defaultEviction() map[string]string {
	return map[string]string{"memory.available": "100Mi", "nodefs.available": "10%", "nodefs.inodesFree": "5%", "imagefs.available": "15%", "imagefs.inodesFree": "5%"}
}
