package plan

import specs "github.com/opencontainers/runtime-spec/specs-go"

// SetAffinity takes over on which CPUs a process runs that is added by exec. It
// is not for the container's first process (config.md, execCPUAffinity). The
// lists have passed spec.CheckProcess.
func (p *Process) SetAffinity(in *specs.CPUAffinity) {
	if in == nil {
		return
	}
	if in.Initial != "" {
		p.InitialAffinity, _ = mask(in.Initial)
		p.KeepAffinity = true // unless a final list says otherwise
	}
	if in.Final != "" {
		p.Affinity, _ = mask(in.Final)
	}
}
