// Package kubelet holds the configuration that berth-node prints for a kubelet against Kubernetes'
// own types.
package kubelet

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/node/agree"
	"github.com/berth-runtime/berth/node/machine/fake"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"
)

// What is printed is read by the kubelet's types with all fields known, and means the same there.
func TestKubeletConfiguration(t *testing.T) {
	const conf = "system-reserved: {cpu: 500m, memory: 1Gi, pids: 1000, ephemeral-storage: 1Gi}\nkube-reserved: {cpu: 0.25, memory: 512Mi}\n" +
		"eviction-hard: {memory.available: 5%, nodefs.available: 10%, pid.available: 100}\n"
	for _, c := range []struct {
		more    string
		systemd bool
		want    v1beta1.KubeletConfiguration
	}{
		{"cgroup-root: /\ncgroups-per-qos: true\n", true, v1beta1.KubeletConfiguration{CgroupDriver: "systemd", CgroupRoot: "/", EnforceNodeAllocatable: []string{"pods"},
			SystemReservedCgroup: "/system.slice", KubeReservedCgroup: "/kubernetes.slice"}},
		{"cgroup-root: /fleet\ncgroups-per-qos: true\npods-enforce: cpu\n", true, v1beta1.KubeletConfiguration{CgroupDriver: "systemd", CgroupRoot: "/fleet", EnforceNodeAllocatable: []string{"none"},
			SystemReservedCgroup: "/system.slice", KubeReservedCgroup: "/kubernetes.slice"}},
		{"system-container: /sys\nkube-container: /kube\n", false, v1beta1.KubeletConfiguration{CgroupDriver: "cgroupfs", CgroupRoot: "/machine", EnforceNodeAllocatable: []string{},
			SystemReservedCgroup: "/sys", KubeReservedCgroup: "/kube"}},
	} {
		m := fake.New(t, "unified", c.systemd)
		p, err := m.Prepare(context.Background(), m.Config(conf+c.more))
		if err != nil {
			t.Fatal(err)
		}
		text, err := agree.YAML(p)
		if err != nil {
			t.Fatal(err)
		}
		var got v1beta1.KubeletConfiguration
		if err := yaml.UnmarshalStrict(text, &got); err != nil {
			t.Errorf("%v in\n%s", err, text)
			continue
		}
		c.want.TypeMeta = got.TypeMeta
		if got.APIVersion != v1beta1.SchemeGroupVersion.String() || got.Kind != "KubeletConfiguration" {
			t.Errorf("%+v", got.TypeMeta)
		}
		qos := strings.Contains(c.more, "per-qos")
		c.want.CgroupsPerQOS = &qos
		c.want.SystemReserved = map[string]string{"cpu": "500m", "memory": "1Gi", "pid": "1k", "ephemeral-storage": "1Gi"}
		c.want.KubeReserved = map[string]string{"cpu": "250m", "memory": "512Mi"}
		same(t, "systemReserved", got.SystemReserved, c.want.SystemReserved)
		same(t, "kubeReserved", got.KubeReserved, c.want.KubeReserved)
		c.want.SystemReserved, c.want.KubeReserved = got.SystemReserved, got.KubeReserved
		c.want.EvictionHard = map[string]string{"memory.available": "5%", "nodefs.available": "10%", "pid.available": "100", "nodefs.inodesFree": "5%", "imagefs.available": "15%", "imagefs.inodesFree": "5%"}
		if !reflect.DeepEqual(got, c.want) {
			is, _ := json.Marshal(got)
			is2, _ := json.Marshal(c.want)
			t.Errorf("%s\nwant\n%s", is, is2)
		}
	}
}

// same compares amounts as Kubernetes counts them.
func same(t *testing.T, name string, got, want map[string]string) {
	t.Helper()
	if a, b := slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)); !slices.Equal(a, b) {
		t.Errorf("%s has %q, want %q", name, a, b)
		return
	}
	for key, text := range got {
		a, err := resource.ParseQuantity(text)
		if err != nil || a.Cmp(resource.MustParse(want[key])) != 0 {
			t.Errorf("%s %s is %s, want %s (%v)", name, key, text, want[key], err)
		}
	}
}
