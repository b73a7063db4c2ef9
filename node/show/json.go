package show

import (
	"encoding/json"

	"github.com/berth-runtime/berth/node/agree"
	"github.com/berth-runtime/berth/node/machine/usage"
	"github.com/berth-runtime/berth/node/plan"
)

type planJSON struct {
	Driver    string         `json:"driver"`
	Cgroups   string         `json:"cgroups"`
	Systemd   int            `json:"systemd,omitempty"`
	Resources []resourceJSON `json:"resources"`
	Places    []placeJSON    `json:"places"`
	Steps     []stepJSON     `json:"steps"`
	Warnings  []string       `json:"warnings"`
	Problems  []string       `json:"problems"`
}

type resourceJSON struct {
	Name        string `json:"name"`
	Capacity    string `json:"capacity"`
	System      string `json:"systemReserved"`
	Kube        string `json:"kubeReserved"`
	Eviction    string `json:"eviction"`
	HugePages   string `json:"hugePages,omitempty"`
	Allocatable string `json:"allocatable"`
	Limit       string `json:"workloadsLimit"`
}

type placeJSON struct {
	Role    string `json:"role"`
	Cgroup  string `json:"cgroup"`
	Slice   string `json:"slice,omitempty"`
	Enforce string `json:"enforce"`
}

type stepJSON struct {
	Kind      string `json:"kind"`
	Target    string `json:"target"`
	Name      string `json:"name,omitempty"`
	Value     string `json:"value"`
	Now       string `json:"now"`
	File      string `json:"file,omitempty"`
	FileNow   string `json:"fileNow,omitempty"`
	Done      bool   `json:"done"`
	CheckOnly bool   `json:"checkOnly,omitempty"`
	Cause     string `json:"cause"`
}

func ofPlan(p *plan.Plan) planJSON {
	out := planJSON{Driver: string(p.Driver), Cgroups: p.Facts.Mode, Systemd: p.Facts.SystemdVersion,
		Places: []placeJSON{}, Steps: []stepJSON{}, Warnings: append([]string{}, p.Warnings...), Problems: []string{}}
	for _, r := range p.Resources {
		f := r.Name.Format
		one := resourceJSON{Name: string(r.Name), Capacity: f(r.Capacity), System: f(r.System), Kube: f(r.Kube), Eviction: f(r.Eviction), Allocatable: f(r.Allocatable), Limit: f(r.Limit)}
		if r.HugePages > 0 {
			one.HugePages = f(r.HugePages)
		}
		out.Resources = append(out.Resources, one)
	}
	for _, at := range p.Places {
		out.Places = append(out.Places, placeJSON{string(at.Role), at.Path, at.Slice, string(at.Enforce)})
	}
	for _, s := range p.Steps {
		one := stepJSON{Kind: string(s.Kind), Target: s.Target, Name: s.Name, Value: s.Value, Now: s.Now, FileNow: s.FileNow, Done: s.Done(), CheckOnly: s.CheckOnly, Cause: s.Cause}
		if s.Write != nil {
			one.File = s.Write.File
		}
		out.Steps = append(out.Steps, one)
	}
	for _, err := range p.Problems {
		out.Problems = append(out.Problems, err.Error())
	}
	return out
}

// PlanJSON writes a plan for programs; amounts are in the notation of Kubernetes.
func PlanJSON(p *plan.Plan) ([]byte, error) { return indent(ofPlan(p)) }

// StatusJSON writes a node for programs.
func StatusJSON(n *Node) ([]byte, error) {
	return indent(struct {
		Plan       planJSON       `json:"plan"`
		Applied    int            `json:"applied"`
		Parts      []Share        `json:"parts"`
		Use        *usage.Report  `json:"use"`
		Containers []containerRow `json:"containers"`
		Agreement  *agree.Report  `json:"agreement,omitempty"`
	}{ofPlan(n.Plan), n.Applied, n.Shares(), n.Now, containers(n.Plan), n.Agreement})
}

// AgreementJSON writes for programs how the programs of a node agree.
func AgreementJSON(r *agree.Report) ([]byte, error) { return indent(r) }

func indent(v any) ([]byte, error) {
	text, err := json.MarshalIndent(v, "", "  ")
	return append(text, '\n'), err
}
