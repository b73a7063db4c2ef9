package seccomptool

import (
	"strconv"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// Kubernetes writes a profile as a SeccompProfile of the Security Profiles Operator, which puts it
// where the kubelets find it.
func Kubernetes(p *specs.LinuxSeccomp, name string) []byte {
	var b strings.Builder
	line := func(indent int, text string) { b.WriteString(strings.Repeat("  ", indent) + text + "\n") }
	line(0, "apiVersion: security-profiles-operator.x-k8s.io/v1beta1")
	line(0, "kind: SeccompProfile")
	line(0, "metadata:")
	line(1, "name: "+name)
	line(0, "spec:")
	line(1, "defaultAction: "+string(p.DefaultAction))
	line(1, "architectures:")
	for _, a := range p.Architectures {
		line(1, "- "+string(a))
	}
	line(1, "syscalls:")
	for _, s := range p.Syscalls {
		line(1, "- action: "+string(s.Action))
		if s.ErrnoRet != nil {
			line(2, "errnoRet: "+strconv.FormatUint(uint64(*s.ErrnoRet), 10))
		}
		line(2, "names:")
		for _, n := range s.Names {
			line(2, "- "+n)
		}
		if len(s.Args) == 0 {
			continue
		}
		line(2, "args:")
		for _, a := range s.Args {
			line(2, "- index: "+strconv.FormatUint(uint64(a.Index), 10))
			line(3, "value: "+strconv.FormatUint(a.Value, 10))
			line(3, "valueTwo: "+strconv.FormatUint(a.ValueTwo, 10))
			line(3, "op: "+string(a.Op))
		}
	}
	return []byte(b.String())
}
