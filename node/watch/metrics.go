package watch

import (
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berth-runtime/berth/internal/proc/procs"
	"github.com/berth-runtime/berth/node/config/resource"
	"github.com/berth-runtime/berth/node/inventory"
	"github.com/berth-runtime/berth/node/machine/usage"
	"github.com/berth-runtime/berth/node/plan"
)

// exposition writes metrics in Prometheus' text format, version 0.0.4.
type exposition struct{ b strings.Builder }

// family begins a metric.
func (x *exposition) family(name, kind, help string) {
	x.b.WriteString("# HELP " + name + " " + help + "\n# TYPE " + name + " " + kind + "\n")
}

// sample writes one value; labels are pairs.
func (x *exposition) sample(name string, value float64, labels ...string) {
	x.b.WriteString(name)
	for i := 0; i < len(labels); i += 2 {
		sep := ","
		if i == 0 {
			sep = "{"
		}
		x.b.WriteString(sep + labels[i] + `="` + labelValue.Replace(labels[i+1]) + `"`)
	}
	if len(labels) > 0 {
		x.b.WriteByte('}')
	}
	x.b.WriteString(" " + strconv.FormatFloat(value, 'g', -1, 64) + "\n")
}

var labelValue = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// base gives an amount in the base unit: processors, bytes, counts.
func base(n resource.Name, amount int64) float64 { return float64(amount) / float64(n.PerUnit()) }

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// metrics measures the node and writes all that is known of it.
func (d *Daemon) metrics() string {
	d.mu.Lock()
	p := d.plan
	d.mu.Unlock()
	use := usage.Measure(d.Machine, p)
	var x exposition
	x.plan(p)
	x.use(use)
	d.mu.Lock()
	defer d.mu.Unlock()
	x.settings(p, &d.state)
	x.family("berth_node_healthy", "gauge", "Whether the node is as planned, as /healthz says.")
	x.sample("berth_node_healthy", flag(len(d.complaints()) == 0))
	x.self()
	return x.b.String()
}

func (x *exposition) plan(p *plan.Plan) {
	x.family("berth_node_capacity", "gauge", "What the node has: processors, bytes, or counts.")
	for _, r := range p.Resources {
		x.sample("berth_node_capacity", base(r.Name, r.Capacity), "resource", string(r.Name))
	}
	x.family("berth_node_reserved", "gauge", "Amounts subtracted from the capacity, by purpose.")
	for _, r := range p.Resources {
		for _, part := range []struct {
			name   string
			amount int64
		}{{"system", r.System}, {"kube", r.Kube}, {"eviction", r.Eviction}, {"huge-pages", r.HugePages}} {
			x.sample("berth_node_reserved", base(r.Name, part.amount), "resource", string(r.Name), "part", part.name)
		}
	}
	x.family("berth_node_allocatable", "gauge", "What is left for workloads.")
	for _, r := range p.Resources {
		x.sample("berth_node_allocatable", base(r.Name, r.Allocatable), "resource", string(r.Name))
	}
	x.family("berth_node_enforced", "gauge", "Whether a part is limited: 1 for all of it, 0.5 for cpu only.")
	for _, at := range p.Places {
		value := map[string]float64{"true": 1, "cpu": 0.5}[string(at.Enforce)]
		x.sample("berth_node_enforced", value, "part", string(at.Role))
	}
	x.family("berth_node_warnings", "gauge", "Warnings, as in status.")
	x.sample("berth_node_warnings", float64(len(p.Warnings)))
	x.family("berth_node_containers_outside", "gauge", "Running containers outside of the workloads' cgroup, by what made them, at the last full check.")
	outside := map[inventory.Maker]int{}
	for _, c := range p.Outside() {
		outside[c.Maker]++
	}
	for _, maker := range slices.Sorted(maps.Keys(outside)) {
		x.sample("berth_node_containers_outside", float64(outside[maker]), "maker", string(maker))
	}
}

func (x *exposition) use(r *usage.Report) {
	parts := map[string]usage.Use{}
	for role, u := range r.Parts {
		parts[string(role)] = u
	}
	if r.User != nil {
		parts["users"] = *r.User
	}
	var names []string
	for name := range parts {
		names = append(names, name)
	}
	slices.Sort(names)
	x.family("berth_node_cpu_seconds_total", "counter", "Processor time of a part, by its cgroup.")
	for _, n := range names {
		x.sample("berth_node_cpu_seconds_total", float64(parts[n].CPU)/1e9, "part", n)
	}
	x.family("berth_node_memory_working_set_bytes", "gauge", "Memory of a part, without easily reclaimed file cache.")
	for _, n := range names {
		x.sample("berth_node_memory_working_set_bytes", float64(parts[n].Memory), "part", n)
	}
	x.family("berth_node_pids", "gauge", "Tasks of a part.")
	for _, n := range names {
		x.sample("berth_node_pids", float64(parts[n].PIDs), "part", n)
	}
	x.family("berth_node_pods", "gauge", "Pods with running containers, by QoS level.")
	for _, l := range r.Levels {
		x.sample("berth_node_pods", float64(l.Pods), "qos", l.Name)
	}
	x.family("berth_node_containers", "gauge", "Running containers, by QoS level.")
	for _, l := range r.Levels {
		x.sample("berth_node_containers", float64(l.Containers), "qos", l.Name)
	}
	x.family("berth_node_containers_memory_working_set_bytes", "gauge", "Memory of the workloads, without easily reclaimed file cache, by QoS level.")
	for _, l := range r.Levels {
		x.sample("berth_node_containers_memory_working_set_bytes", float64(l.Use.Memory), "qos", l.Name)
	}
	x.family("berth_node_containers_pids", "gauge", "Tasks of the workloads, by QoS level.")
	for _, l := range r.Levels {
		x.sample("berth_node_containers_pids", float64(l.Use.PIDs), "qos", l.Name)
	}
}

func (x *exposition) settings(p *plan.Plan, s *state) {
	held := 0
	for _, step := range p.Steps {
		if !step.CheckOnly {
			held++
		}
	}
	x.family("berth_node_settings", "gauge", "Settings of the plan, by whether they are in effect.")
	x.sample("berth_node_settings", float64(held-len(s.unmended)), "state", "held")
	x.sample("berth_node_settings", float64(len(s.unmended)), "state", "unmended")
	x.family("berth_node_drifts_total", "counter", "Settings changed by other programs.")
	var keys [][2]string
	for k := range s.drifts {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b [2]string) int { return strings.Compare(a[0]+" "+a[1], b[0]+" "+b[1]) })
	for _, k := range keys {
		x.sample("berth_node_drifts_total", float64(s.drifts[k]), "target", k[0], "setting", k[1])
	}
	x.family("berth_node_mended_total", "counter", "Drifts that were reverted.")
	x.sample("berth_node_mended_total", float64(s.mended))
	x.family("berth_node_evictions_total", "counter", "Containers killed because less was left than eviction-hard, by resource.")
	for _, name := range slices.Sorted(maps.Keys(s.evictions)) {
		x.sample("berth_node_evictions_total", float64(s.evictions[name]), "resource", string(name))
	}
	x.family("berth_node_failures_total", "counter", "Checks and fixes that failed.")
	x.sample("berth_node_failures_total", float64(s.failures))
	x.family("berth_node_reloads_total", "counter", "Reloads of the configuration.")
	x.sample("berth_node_reloads_total", float64(s.reloads))
	x.family("berth_node_reload_ok", "gauge", "Whether the last reload was accepted.")
	x.sample("berth_node_reload_ok", flag(s.reloadFailed == ""))
	x.family("berth_node_last_check_timestamp_seconds", "gauge", "Time of the last full check.")
	x.sample("berth_node_last_check_timestamp_seconds", float64(s.checked.UnixMilli())/1000)
}

// self is what the daemon itself uses, under the names that every exporter has.
func (x *exposition) self() {
	s, err := procs.ReadStat(os.Getpid())
	if err != nil {
		return
	}
	x.family("process_cpu_seconds_total", "counter", "Processor time of berth-node.")
	x.sample("process_cpu_seconds_total", float64(s.User+s.System)/procs.Ticks)
	x.family("process_resident_memory_bytes", "gauge", "Memory of berth-node.")
	x.sample("process_resident_memory_bytes", float64(s.Resident)*float64(os.Getpagesize()))
}

// complaints are the reasons why the node is not healthy; the lock is held.
func (d *Daemon) complaints() []string {
	var list []string
	s := &d.state
	if s.lookFailed != "" {
		list = append(list, "look: "+s.lookFailed)
	}
	if s.mendFailed != "" {
		list = append(list, "mend: "+s.mendFailed)
	}
	for id, why := range s.unmended {
		list = append(list, id+": "+why)
	}
	if s.reloadFailed != "" {
		list = append(list, "reload: "+s.reloadFailed)
	}
	if age := time.Since(s.checked); age > 3*d.conf.Recheck {
		list = append(list, "the last look at the node was "+age.Round(time.Second).String()+" ago")
	}
	slices.Sort(list)
	return list
}
