package cluster

import (
	"fmt"
	"regexp"
	"strings"
)

// Probes by exec and by HTTP: a failing liveness probe has the container restarted, a failing
// readiness probe takes it out.
func testProbes(p *Part) {
	p.Pod("probed", `
containers:
- name: exec
  image: IMAGE
  command: ["sh", "-c", "touch /healthy; exec sleep 3600"]
  livenessProbe: {exec: {command: ["cat", "/healthy"]}, periodSeconds: 2, timeoutSeconds: 60, failureThreshold: 1}
  startupProbe: {exec: {command: ["test", "-e", "/healthy"]}, periodSeconds: 1, timeoutSeconds: 60, failureThreshold: 60}
- name: http
  image: IMAGE
  command: ["sh", "-c", "mkdir /www; echo ok > /www/ready; exec httpd -f -p 8080 -h /www"]
  readinessProbe: {httpGet: {path: /ready, port: 8080}, periodSeconds: 2, timeoutSeconds: 60, failureThreshold: 1}
`)
	p.UnderBerth("probed")
	p.Kubectl("exec", "probed", "--container", "http", "--", "mv", "/www/ready", "/www/not")
	p.Kubectl("wait", "--for=condition=Ready=False", "pod/probed", "--timeout", patience.String())
	p.Kubectl("exec", "probed", "--container", "http", "--", "mv", "/www/not", "/www/ready")
	p.Kubectl("wait", "--for=condition=Ready", "pod/probed", "--timeout", patience.String())
	p.Kubectl("exec", "probed", "--container", "exec", "--", "rm", "/healthy")
	p.Kubectl("wait", "--for=jsonpath={.status.containerStatuses[0].restartCount}=1", "pod/probed", "--timeout", patience.String())
	p.Kubectl("wait", "--for=condition=Ready", "pod/probed", "--timeout", patience.String())
	p.Expect("the first end", p.Get("pod/probed", "{.status.containerStatuses[0].lastState.terminated.exitCode}"), "137")
}

// What needs more memory than its limit is killed, and the API says why.
func testOutOfMemory(p *Part) {
	p.Create("hungry", `
restartPolicy: Never
containers:
- name: main
  image: IMAGE
  command: ["sh", "-c", "head -c 200m /dev/zero | tail > /dev/null; exit $?"]
  resources: {limits: {memory: 32Mi}}
- name: beside
  image: IMAGE
  command: ["sh", "-c", "trap exit TERM; while :; do sleep 1 & wait $!; done"]
`)
	const ended = "{.status.containerStatuses[?(@.name=='main')].state.terminated.reason}"
	p.Kubectl("wait", "--for=jsonpath="+ended+"=OOMKilled", "pod/hungry", "--timeout", patience.String())
	p.Expect("the other container", p.Get("pod/hungry", "{.status.containerStatuses[?(@.name=='beside')].ready}"), "true")
	p.Expect("its exit code", p.Get("pod/hungry", "{.status.containerStatuses[?(@.name=='main')].state.terminated.exitCode}"), "137")
	// containerd has deleted the container by now, so that berth inspect has nothing to say of it.
	// What stays as long as the pod is the kernel's own count, in the pod's slice.
	slice := fmt.Sprintf("/sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod%s.slice",
		strings.ReplaceAll(p.Get("pod/hungry", "{.metadata.uid}"), "-", "_"))
	events := p.Exec(p.T, p.NodeOf("hungry"), "cat", slice+"/memory.events")
	if !regexp.MustCompile(`(?m)^oom_kill [1-9]`).MatchString(events) {
		p.T.Errorf("the kernel's count of kills in %s:\n%s", slice, events)
	}
}

// Pods outlast restarts of containerd and of the kubelet, and are still managed after them.
func testRestarts(p *Part) {
	p.Pod("steady", `
containers:
- name: main
  image: IMAGE
  command: ["sh", "-c", "exec sleep 86400"]
`)
	node := p.NodeOf("steady")
	first := p.Get("pod/steady", "{.status.containerStatuses[0].containerID}")
	for _, kill := range []string{"systemctl restart containerd", "systemctl kill --kill-whom main --signal KILL containerd", "systemctl restart kubelet", "systemctl kill --kill-whom main --signal KILL kubelet"} {
		p.Exec(p.T, node, "bash", "-c", kill)
		p.WaitIn(p.T, "exec after "+kill, func() (string, bool) {
			out, err := p.Try("exec", "steady", "--", "echo", "there")
			return out, err == nil && out == "there\n"
		})
		p.Expect("the container after "+kill, p.Get("pod/steady", "{.status.containerStatuses[0].containerID} {.status.containerStatuses[0].restartCount}"), first+" 0")
	}
	// The shim is killed: the kubelet makes the pod anew.
	p.Exec(p.T, node, "bash", "-c", "pkill -KILL -f '[c]ontainerd-shim-berth-v2.*k8s.io'")
	p.WaitIn(p.T, "another container", func() (string, bool) {
		out, err := p.Try("get", "pod/steady", "-o", "jsonpath={.status.containerStatuses[0].containerID} {.status.containerStatuses[0].ready}")
		return out, err == nil && !strings.HasPrefix(out, first) && strings.HasSuffix(out, " true")
	})
	p.Expect("after the shim's end", p.Sh("steady", "echo there"), "there")
}
