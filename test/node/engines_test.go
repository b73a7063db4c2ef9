package node

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// engine makes a container with a runtime's own defaults, in a cgroup whose name says nothing, and
// gives the cgroup's path.
func engine(t *testing.T, runtime, id string) string {
	t.Helper()
	binary, err := exec.LookPath(runtime)
	if err != nil {
		t.Skip(err)
	}
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		t.Skip(err)
	}
	bundle := t.TempDir()
	program, err := os.ReadFile(busybox)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(bundle+"/rootfs/bin", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(bundle+"/rootfs/bin/busybox", program, 0o755); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) ([]byte, error) {
		cmd := exec.Command(binary, args...)
		cmd.Dir = bundle
		return cmd.CombinedOutput()
	}
	if out, err := run("spec"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var config map[string]any
	text, err := os.ReadFile(bundle + "/config.json")
	if err == nil {
		err = json.Unmarshal(text, &config)
	}
	if err != nil {
		t.Fatal(err)
	}
	top := fmt.Sprintf("/berth-node-engines-%d", os.Getpid())
	at := top + "/" + id
	config["linux"].(map[string]any)["cgroupsPath"] = at
	process := config["process"].(map[string]any)
	process["terminal"] = false
	process["args"] = []string{"/bin/busybox", "sleep", "900"}
	if text, err = json.Marshal(config); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(bundle+"/config.json", text, 0o600); err != nil {
		t.Fatal(err)
	}
	// Its output goes to files: a pipe would be the container's, too, and not end.
	said, err := os.Create(bundle + "/said")
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	start := exec.Command(binary, "run", "--detach", "--bundle", bundle, id)
	start.Stderr = said
	if err := start.Run(); err != nil {
		why, _ := os.ReadFile(bundle + "/said")
		t.Skipf("%s can't run a container here: %v: %s", runtime, err, why)
	}
	t.Cleanup(func() {
		if out, err := run("delete", "--force", id); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		// The runtimes remove the container's cgroup, and not what they made above it.
		left, _ := filepath.Glob("/sys/fs/cgroup/*" + top)
		for _, dir := range append(left, "/sys/fs/cgroup"+top) {
			if err := os.Remove(dir); err != nil && !os.IsNotExist(err) {
				t.Error(err)
			}
		}
	})
	return at
}

// Containers of every OCI runtime are found by its records, where the cgroup's name says nothing.
func TestStatusSeesEveryRuntime(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("running containers with the runtimes' defaults takes root")
	}
	berthNode := program(t)
	for _, runtime := range []string{"runc", "crun"} {
		t.Run(runtime, func(t *testing.T) {
			id := fmt.Sprintf("berth-node-test-%d", os.Getpid())
			at := engine(t, runtime, id)
			out, err := exec.Command(berthNode, "status", "--json", "--state-dir="+t.TempDir(), "--config=/dev/null").Output()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			var status struct {
				Containers []struct {
					ID, Maker, Runtime, Cgroup, Change string
					Outside                            bool
				}
			}
			if err := json.Unmarshal(out, &status); err != nil {
				t.Fatal(err)
			}
			for _, c := range status.Containers {
				if c.ID == id {
					if c.Maker != runtime || c.Runtime != runtime || c.Cgroup != at || !c.Outside || c.Change == "" {
						t.Errorf("%+v", c)
					}
					return
				}
			}
			t.Errorf("it is not among %+v", status.Containers)
		})
	}
}
