package cluster

import (
	"regexp"
	"strings"
)

// The first thing that users run.
func testPod(p *Part) {
	p.Pod("hello", `
containers:
- name: hello
  image: IMAGE
  command: ["sh", "-c", "echo hello; sleep 3600"]
`)
	p.UnderBerth("hello")
	p.Expect("the log", p.Kubectl("logs", "hello"), "hello")
	p.Expect("the host name", p.Sh("hello", "hostname"), "hello")
}

// A container before the others, one that stays beside them (an init container with restartPolicy
// Always, which starts first and ends last), and what they share.
func testSidecar(p *Part) {
	p.Create("job", `
restartPolicy: Never
initContainers:
- name: first
  image: IMAGE
  command: ["sh", "-c", "echo first >> /work/order"]
  volumeMounts: [{name: work, mountPath: /work}]
- name: beside
  image: IMAGE
  restartPolicy: Always
  command: ["sh", "-c", "trap 'echo beside ends; exit 0' TERM; echo beside >> /work/order; touch /work/up; while :; do sleep 1 & wait $!; done"]
  startupProbe: {exec: {command: ["test", "-e", "/work/up"]}, periodSeconds: 1}
  volumeMounts: [{name: work, mountPath: /work}]
containers:
- name: main
  image: IMAGE
  command: ["sh", "-c", "echo main >> /work/order; cat /work/order"]
  volumeMounts: [{name: work, mountPath: /work}]
volumes:
- name: work
  emptyDir: {}
`)
	p.Phase("job", "Succeeded")
	p.Expect("the order", p.Kubectl("logs", "job", "--container", "main"), "first\nbeside\nmain")
	p.Expect("the sidecar's end", p.Kubectl("logs", "job", "--container", "beside"), "beside ends")
	p.Expect("the sidecar's status", p.Get("pod/job", "{.status.initContainerStatuses[1].state.terminated.exitCode}"), "0")
}

// hostUsers: false: the container's root is nobody on the node.
func testUserNamespace(p *Part) {
	p.Pod("mapped", `
hostUsers: false
containers:
- name: main
  image: IMAGE
  command: ["sh", "-c", "touch /data/mine; exec sleep 3600"]
  volumeMounts: [{name: data, mountPath: /data}]
volumes:
- name: data
  emptyDir: {}
`)
	p.UnderBerth("mapped")
	inside, outside, count := "", "", ""
	if fields := strings.Fields(p.Sh("mapped", "cat /proc/self/uid_map")); len(fields) == 3 {
		inside, outside, count = fields[0], fields[1], fields[2]
	}
	if inside != "0" || outside == "0" || count != "65536" {
		p.T.Errorf("root is mapped as %s %s %s", inside, outside, count)
	}
	p.Expect("the owner in the pod", p.Sh("mapped", "stat -c %u /data/mine"), "0")
	node, uid := p.NodeOf("mapped"), p.Get("pod/mapped", "{.metadata.uid}")
	// The volume's mount is mapped, so on the node the file is root's.
	p.Expect("the owner on the node", p.Exec(p.T, node, "stat", "-c", "%u", "/var/lib/kubelet/pods/"+uid+"/volumes/kubernetes.io~empty-dir/data/mine"), "0")
	// ps writes ids of 2³¹ and more as negative numbers.
	p.Expect("the process on the node", p.Exec(p.T, node, "bash", "-c", "awk '/^Uid:/ {print $2}' /proc/$(pgrep -f '^sleep 3600$')/status"), outside)
}

// A privileged pod sees the node's devices, and its cgroups.
func testPrivileged(p *Part) {
	p.Pod("privileged", `
hostPID: true
containers:
- name: main
  image: IMAGE
  command: ["sleep", "3600"]
  securityContext: {privileged: true}
`)
	p.UnderBerth("privileged")
	node := p.NodeOf("privileged")
	p.Expect("the cgroup namespace", p.Sh("privileged", "readlink /proc/self/ns/cgroup"), p.Exec(p.T, node, "readlink", "/proc/1/ns/cgroup"))
	p.Expect("all capabilities", p.Sh("privileged", "grep CapEff /proc/self/status"), p.Exec(p.T, node, "grep", "CapEff", "/proc/1/status"))
	if own := p.Sh("privileged", "cat /proc/self/cgroup"); !regexp.MustCompile(`^0::/kubepods\.slice/.*/cri-containerd-[0-9a-f]+\.scope`).MatchString(own) {
		p.T.Errorf("its cgroup as it sees it: %s", own)
	}
	p.Sh("privileged", "test -b /dev/ubda && mkdir /m && mount -t tmpfs none /m && umount /m")
	// It sees all cgroups of the node, and may change its own (docs/differences.md). With runc it
	// may change all of them; here it has to remount them first.
	p.Sh("privileged", "cd /sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup) && mkdir tried && rmdir tried")
	p.Expect("another cgroup", p.Sh("privileged", "mkdir /sys/fs/cgroup/tried 2>&1 | grep -o 'Read-only file system'"), "Read-only file system")
	p.Sh("privileged", "mount -o remount,bind,rw /sys/fs/cgroup && mkdir /sys/fs/cgroup/tried && rmdir /sys/fs/cgroup/tried")
}

// What CSI drivers do: a mount that a container makes in a volume with Bidirectional propagation is
// on the node, and from there in the containers of other pods with HostToContainer.
func testBidirectional(p *Part) {
	p.Apply(`apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: driver
spec:
  selector: {matchLabels: {app: driver}}
  template:
    metadata: {labels: {app: driver}}
    spec:
      runtimeClassName: berth
      terminationGracePeriodSeconds: 5
      containers:
      - name: driver
        image: IMAGE
        command: ["sh", "-c", "mkdir -p /plugins/volume && mount -t tmpfs -o size=1m volume /plugins/volume && echo data > /plugins/volume/file && exec sleep 3600"]
        securityContext: {privileged: true}
        readinessProbe: {exec: {command: ["test", "-e", "/plugins/volume/file"]}}
        volumeMounts: [{name: plugins, mountPath: /plugins, mountPropagation: Bidirectional}]
      volumes:
      - name: plugins
        hostPath: {path: /var/lib/kubelet/plugins/tried, type: DirectoryOrCreate}
`)
	p.Kubectl("rollout", "status", "daemonset/driver", "--timeout", patience.String())
	p.Pod("user", `
containers:
- name: main
  image: IMAGE
  command: ["sleep", "3600"]
  volumeMounts: [{name: plugins, mountPath: /plugins, mountPropagation: HostToContainer}]
volumes:
- name: plugins
  hostPath: {path: /var/lib/kubelet/plugins/tried}
`)
	node := p.NodeOf("user")
	p.Expect("the file on the node", p.Exec(p.T, node, "cat", "/var/lib/kubelet/plugins/tried/volume/file"), "data")
	p.Expect("the file in the other pod", p.Sh("user", "cat /plugins/volume/file"), "data")
	// One that comes after the pod's start.
	p.Exec(p.T, node, "bash", "-c", "cd /var/lib/kubelet/plugins/tried; mkdir later; mount -t tmpfs later later; echo later > later/file")
	p.Expect("a later mount", p.Sh("user", "cat /plugins/later/file"), "later")
	for _, n := range p.Nodes {
		p.T.Cleanup(func() {
			p.TryExec(n, "bash", "-c", "cd /var/lib/kubelet/plugins && umount tried/*; rm -r tried")
		})
	}
}

// emptyDir on memory counts for the container, and the projected token is the pod's.
func testVolumes(p *Part) {
	p.Apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {key: value}\n")
	p.Pod("volumes", `
securityContext: {runAsUser: 1000, runAsGroup: 1000, fsGroup: 2000}
containers:
- name: main
  image: IMAGE
  command: ["sleep", "3600"]
  resources: {limits: {memory: 64Mi, cpu: 200m}}
  env:
  - {name: KEY, valueFrom: {configMapKeyRef: {name: settings, key: key}}}
  - {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
  - {name: LIMIT, valueFrom: {resourceFieldRef: {resource: limits.memory}}}
  volumeMounts:
  - {name: memory, mountPath: /memory}
  - {name: token, mountPath: /token, readOnly: true}
  - {name: settings, mountPath: /settings/key, subPath: key}
volumes:
- name: memory
  emptyDir: {medium: Memory, sizeLimit: 16Mi}
- name: settings
  configMap: {name: settings}
- name: token
  projected:
    sources:
    - serviceAccountToken: {path: token, audience: somewhere, expirationSeconds: 3600}
    - downwardAPI: {items: [{path: name, fieldRef: {fieldPath: metadata.name}}]}
`)
	p.UnderBerth("volumes")
	p.Expect("the file system", p.Sh("volumes", "stat -f -c %T /memory"), "tmpfs")
	p.Expect("its size", p.Sh("volumes", "df -k /memory | awk 'END {print $2}'"), "16384")
	p.Expect("its group", p.Sh("volumes", "stat -c %g /memory"), "2000")
	p.Sh("volumes", "echo written > /memory/file && grep -q written /memory/file")
	p.Expect("the token's parts", p.Sh("volumes", `tr . '\n' < /token/token | grep -c .`), "3")
	p.Expect("the downward API", p.Sh("volumes", "cat /token/name; echo; echo $POD $LIMIT $KEY; cat /settings/key"), "volumes\nvolumes 67108864 value\nvalue")
	p.Expect("read-only", p.Sh("volumes", "touch /token/other 2>&1 | grep -o 'Read-only file system'"), "Read-only file system")
	p.Expect("the user", p.Sh("volumes", "id -u; id -g; id -G"), "1000\n1000\n1000 2000")
	p.Expect("memory.max", p.Sh("volumes", "cat /sys/fs/cgroup/memory.max"), "67108864")
	p.Expect("cpu.max", p.Sh("volumes", "cat /sys/fs/cgroup/cpu.max"), "20000 100000")
}

// Hooks run in the container; after the grace period it is killed.
func testLifecycle(p *Part) {
	p.Pod("hooks", `
containers:
- name: main
  image: IMAGE
  command: ["sh", "-c", "trap 'echo TERM >> /node/order; exit' TERM; while :; do sleep 1 & wait $!; done"]
  lifecycle:
    postStart: {exec: {command: ["sh", "-c", "echo postStart > /node/order"]}}
    preStop: {exec: {command: ["sh", "-c", "echo preStop >> /node/order"]}}
  volumeMounts: [{name: node, mountPath: /node}]
volumes:
- name: node
  hostPath: {path: /var/lib/hooks, type: DirectoryOrCreate}
`)
	node := p.NodeOf("hooks")
	p.Kubectl("delete", "pod/hooks", "--timeout", patience.String())
	p.Expect("the order", p.Exec(p.T, node, "bash", "-c", "cat /var/lib/hooks/order; rm -r /var/lib/hooks"), "postStart\npreStop\nTERM")

	p.Pod("deaf", `
restartPolicy: Never
containers:
- name: main
  image: IMAGE
  command: ["sh", "-c", "trap '' TERM; while :; do sleep 1; done"]
`)
	watch := p.kubectl("--namespace", p.Namespace, "get", "pod/deaf", "--watch", "-o", `jsonpath={.status.containerStatuses[0].state.terminated.exitCode}{"\n"}`)
	out := &strings.Builder{}
	watch.Stdout = out
	if err := watch.Start(); err != nil {
		p.T.Fatal(err)
	}
	p.Kubectl("delete", "pod/deaf", "--timeout", patience.String())
	watch.Process.Kill()
	watch.Wait()
	if !strings.Contains(out.String(), "137") {
		p.T.Errorf("killed after the grace period, it should end with 137: %q", out)
	}
}
