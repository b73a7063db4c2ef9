package view

import (
	"maps"
	"slices"

	"github.com/berth-runtime/berth/internal/json"
	"github.com/opencontainers/runtime-spec/specs-go/features"
)

// FormatFeatures writes the features document, as encoding/json would.
func FormatFeatures(f *features.Features, indent string) []byte {
	w := json.NewWriter(make([]byte, 0, 8192), indent)
	w.Object()
	w.Key("ociVersionMin").String(f.OCIVersionMin)
	w.Key("ociVersionMax").String(f.OCIVersionMax)
	words(w, "hooks", f.Hooks)
	words(w, "mountOptions", f.MountOptions)
	if l := f.Linux; l != nil {
		w.Key("linux").Object()
		writeLinux(w, l)
		w.End()
	}
	if len(f.Annotations) > 0 {
		w.Key("annotations").Object()
		for _, k := range slices.Sorted(maps.Keys(f.Annotations)) {
			w.Key(k).String(f.Annotations[k])
		}
		w.End()
	}
	words(w, "potentiallyUnsafeConfigAnnotations", f.PotentiallyUnsafeConfigAnnotations)
	w.End()
	return w.Bytes()
}

func words(w *json.Writer, key string, list []string) {
	if len(list) > 0 {
		w.Key(key).Strings(list)
	}
}

func truth(w *json.Writer, key string, b *bool) {
	if b != nil {
		w.Key(key).Bool(*b)
	}
}

func writeLinux(w *json.Writer, l *features.Linux) {
	words(w, "namespaces", l.Namespaces)
	words(w, "capabilities", l.Capabilities)
	if c := l.Cgroup; c != nil {
		w.Key("cgroup").Object()
		truth(w, "v1", c.V1)
		truth(w, "v2", c.V2)
		truth(w, "systemd", c.Systemd)
		truth(w, "systemdUser", c.SystemdUser)
		truth(w, "rdma", c.Rdma)
		w.End()
	}
	if s := l.Seccomp; s != nil {
		w.Key("seccomp").Object()
		truth(w, "enabled", s.Enabled)
		words(w, "actions", s.Actions)
		words(w, "operators", s.Operators)
		words(w, "archs", s.Archs)
		words(w, "knownFlags", s.KnownFlags)
		words(w, "supportedFlags", s.SupportedFlags)
		w.End()
	}
	if a := l.Apparmor; a != nil {
		w.Key("apparmor").Object()
		truth(w, "enabled", a.Enabled)
		w.End()
	}
	if s := l.Selinux; s != nil {
		w.Key("selinux").Object()
		truth(w, "enabled", s.Enabled)
		w.End()
	}
	if r := l.IntelRdt; r != nil {
		w.Key("intelRdt").Object()
		truth(w, "enabled", r.Enabled)
		truth(w, "schemata", r.Schemata)
		truth(w, "monitoring", r.Monitoring)
		w.End()
	}
	if m := l.MemoryPolicy; m != nil {
		w.Key("memoryPolicy").Object()
		words(w, "modes", m.Modes)
		words(w, "flags", m.Flags)
		w.End()
	}
	if m := l.MountExtensions; m != nil {
		w.Key("mountExtensions").Object()
		if m.IDMap != nil {
			w.Key("idmap").Object()
			truth(w, "enabled", m.IDMap.Enabled)
			w.End()
		}
		w.End()
	}
	if n := l.NetDevices; n != nil {
		w.Key("netDevices").Object()
		truth(w, "enabled", n.Enabled)
		w.End()
	}
}
