package reliability

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/berth-runtime/berth/test/harness"
)

// failure is one run: the call is not made, and fails with the errno.
type failure struct {
	call  call
	errno string
}

func (f failure) String() string { return fmt.Sprintf("%s fails with %s", f.call, f.errno) }

var errnos = []string{"EPERM", "ENOSYS", "ENOMEM", "EINTR", "ENOSPC"}

// failures are the runs for the calls of a command: each call with each errno, but of many calls of
// a kind only the first few, and the others with one errno in turn.
func failures(calls []call) []failure {
	var all []failure
	seen := map[string]int{}
	// Up to here it was the Go runtime, which gives up by itself: that the engine lets no
	// descriptor leak is the first thing it does.
	begin := slices.IndexFunc(calls, func(c call) bool { return c.name == "close_range" })
	for i, c := range calls[max(begin, 0):] {
		switch {
		case c.name == "close" || c.name == "exit_group":
			continue // close(2) never leaves a descriptor open, whatever it returns
		case c.name == "read" && strings.HasPrefix(c.text, "pipe:"):
			continue // syscall.ForkExec waits for a child that it could not hear of; no read of a pipe fails like this
		}
		kind := fmt.Sprint(c.process, c.name, c.text)
		seen[kind]++
		for j, errno := range errnos {
			if seen[kind] == 1 || i%len(errnos) == j {
				all = append(all, failure{c, errno})
			}
		}
	}
	return all
}

// tolerated are calls whose failure is not the command's, each with the reason. Any other must be
// an error.
type tolerated struct {
	call   string // a pattern for "PROCESS:NAME" or "PROCESS:NAME PATH"
	errnos string // some of them, "" for all
	why    string
}

// fail has each call of a command fail, and looks at what comes of it.
func fail(t *testing.T, verb string, flags, words []string, start func() *worker, prepare func(w *worker), undo func(t *testing.T, w *worker, about string, worked bool), fine []tolerated) {
	t.Helper()
	w := start()
	if prepare != nil {
		prepare(w)
	}
	calls, o := w.record(verb, flags, words)
	o.OK(t)
	undo(t, w, "unhurt", true)
	w.gone(t, o)
	w.end(t)
	var missed, worked, failed atomic.Int64
	var mu sync.Mutex
	var unexpected []string
	inParallel(t, failures(calls), start, func(w *worker, f failure) {
		if prepare != nil {
			prepare(w)
		}
		o := w.run(verb, flags, words, "-at", f.call.at(), "-fail", f.errno)
		if !o.hit {
			missed.Add(1)
		}
		switch {
		case o.Code == 0:
			worked.Add(1)
			if o.hit && !isTolerated(fine, f) {
				mu.Lock()
				unexpected = append(unexpected, f.String())
				mu.Unlock()
			}
		default:
			failed.Add(1)
			rightError(t, o, f)
		}
		undo(t, w, f.String(), o.Code == 0)
		w.gone(t, o)
		w.nothingLeft(t, f.String())
	})
	slices.Sort(unexpected)
	for _, u := range unexpected {
		t.Errorf("%s, and %s succeeds all the same", u, verb)
	}
	t.Logf("%s: %d calls, made to fail %d times: %d errors, %d did without, %d not reached again",
		verb, len(calls), failed.Load()+worked.Load(), failed.Load(), worked.Load(), missed.Load())
	harness.Report(t, "calls failed", failed.Load()+worked.Load())
}

func isTolerated(fine []tolerated, f failure) bool {
	for _, e := range fine {
		if e.errnos != "" && !slices.Contains(strings.Fields(e.errnos), f.errno) {
			continue
		}
		call := regexp.MustCompile("^(?:" + e.call + ")$")
		for _, name := range []string{fmt.Sprintf("%d:%s", f.call.process, f.call.name), f.call.at()} { // or one of many
			if call.MatchString(strings.TrimSpace(name + " " + f.call.text)) {
				return true
			}
		}
	}
	return false
}

// rightError fails the test unless the command said in one line what went wrong.
func rightError(t *testing.T, o outcome, f failure) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(o.Stderr, "\n"), "\n")
	var errors []string
	for _, line := range lines {
		if !strings.Contains(line, "level=warn") {
			errors = append(errors, line)
		}
	}
	message := o.Message()
	if len(errors) != 1 || len(message) < 12 || !strings.Contains(message, ":") {
		t.Errorf("%s: status %d, the error is %q", f, o.Code, o.Stderr)
	}
}

// madeAgain are calls that are made again when a signal has interrupted them.
var madeAgain = tolerated{"[02]:(flock|openat|read|write|mkdirat|fstat|newfstatat|unlinkat|renameat|wait4|recvmsg|poll|getdents64|pread64)( .*)?", "EINTR", "made again"}

// looks are calls of the engine by which it finds something out that has an answer for when it
// can't.
var looks = []tolerated{
	madeAgain,
	{"0:close_range", "", "the descriptors are marked one by one"},
	{"0:statfs .*", "", "a hierarchy that can't be looked at counts as not there"},
	{"0:ioctl", "", "what can't be asked for its size is not a terminal"},
	{"0:fstat .*", "", "the size of a file is a guess for the buffer; whose a stream is, only for giving it to the user"},
	{"0:fcntl .*", "EINTR ENOMEM ENOSPC ENOSYS EPERM", "the os package asks whether a file is non-blocking"},
	{"0:getrlimit", "", "the limit is taken for low, and descriptors are closed one by one"},
	{"0:prctl", "", "the highest capability is the last one known"},
	{"0:landlock_create_ruleset", "", "there is no Landlock"},
	{"0:mount_setattr", "", "there is no mount_setattr"},
	{"0:open_tree none", "", "there is no OPEN_TREE_NAMESPACE: the mount namespace begins as a copy"},
	{"0:(openat|read|fstat|fcntl) /proc/.*/uid_map", "", "hints speak of the initial user namespace"},
	{"0:(openat2|fstat|fcntl|read) .*etc/passwd", "", "HOME is /"},
	{"0:openat .*/rootfs", "", "HOME is /"},
	{"0:flock .* unlock", "", "the lock goes with its descriptor"},
	{"0:unlinkat start", "", "the gate's socket goes with the folder; gc removes it before"},
	{"1:setsid", "EPERM", "it leads a session already"},
	{"0:newfstatat start", "", "exec does not mind whether the container waits to be started"},
	{"0:openat /proc/self/fd/[0-9]+", "", "HOME is /: this opens etc/passwd, once it is known to be a file"},
	{"0:ppoll", "", "it is the read behind it that waits, then"},
	{"0:newfstatat /proc/self/fd/.*", "", "a fork that gets lost is not looked for"},
	{"0:(statx|syscall_45[78]|(openat|read) /proc/(self|[0-9]+)/cgroup)( .*)?", "", "the hierarchies are found by the table of all mounts"},
	{"0:capget", "", "which capabilities the runtime lacks is for a warning: the kernel refuses them later"},
	{"0:newfstatat berth:root", "", "the root counts as not marked, so less is collected"},
	{"0:(openat|read) /proc/(self|[0-9]+)/timens_offsets", "", "there are no time namespaces"},
	{"0:(openat|read) /proc/sys/kernel/random/boot_id", "", "a process is known by its pid and start time"},
}

func TestFailingCallsOfCreate(t *testing.T) {
	fine := append(slices.Clone(looks),
		tolerated{"1:keyctl", "ENOSYS EPERM", "no keyring of its own, as where the kernel has none"},
		tolerated{"1:close_range", "ENOSYS", "the descriptors are marked one by one"},
		tolerated{"1:sched_setaffinity", "", "the container keeps the CPUs of its caller"},
		tolerated{"0:(openat|read) /proc/[0-9]+/stat", "", "whether it still executes our init is looked at only when it is slow"},
		tolerated{"1:madvise", "", "what it does not need any more it keeps"},
		tolerated{"1:openat /bin/true", "", "only that it is a folder would be an error"},
		tolerated{"1:(accept4|read)( .*)?", "", "the container is made by then; that it ends is seen by start"},
	)
	fail(t, "create", nil, nil, func() *worker { return newWorker(t, "/bin/true") }, nil, afterCreate, fine)
}

func TestFailingCallsOfStart(t *testing.T) {
	undo := func(t *testing.T, w *worker, about string, worked bool) {
		w.force(t, about)
		w.ended(t)
	}
	fine := append(slices.Clone(looks),
		tolerated{"0:(openat|read) /proc/[0-9]+/stat", "", "a process that can't be looked at counts as there"},
		tolerated{"0:readlinkat /proc/[0-9]+/exe", "", "what it executes that can't be told is asked at the gate"},
		tolerated{"0:(openat|read) .*/(freezer\\.state|cgroup\\.events|cgroup\\.freeze)", "", "whether it is frozen is asked of the group anew"},
	)
	fail(t, "start", nil, nil, func() *worker { return newWorker(t, "/inside", "hang") }, func(w *worker) { w.c.Create() }, undo, fine)
}

func TestFailingCallsOfExec(t *testing.T) {
	start := func() *worker {
		w := newWorker(t, "/inside", "hang")
		w.c.RunDetached()
		w.kept = append(w.kept, w.c.ID)
		return w
	}
	undo := func(t *testing.T, w *worker, about string, worked bool) {
		if s := w.c.State(); s.Status != "running" {
			t.Errorf("%s: it is %s", about, s.Status)
		}
	}
	fine := append(slices.Clone(looks),
		tolerated{"0:(openat|read|readlinkat) /proc/[0-9]+/(stat|exe|comm|root)", "", "a process that can't be looked at counts as there"},
		tolerated{"0:(openat|read) (/proc/.*/mountinfo|/sys/fs/cgroup/.*|freezer.state|cgroup.events|cgroup.freeze)", "",
			"whether it is paused; the cgroup is opened once more to enter it"},
		tolerated{"0:(openat|read) /proc/[0-9]+/setgroups", "", "setgroups is tried"},
		tolerated{"0:readlinkat /proc/self/ns/.*", "", "a namespace that may be our own is entered all the same"},
		tolerated{"0:readlinkat /proc/[0-9]+/ns/.*", "EINTR", "made again"},
		tolerated{"0:(wait4|ppoll|poll)", "", "what it waits for is waited for again, or has ended"},
		tolerated{"0:newfstatat /proc/[0-9]+/exe", "", "that it is our child is known; what it executes can't always be looked at"},
		tolerated{"0:waitid", "EINTR", "made again"},
		tolerated{"0:waitid_pid", "", "the end of what has forked is waited for without it"},
		tolerated{"0:kill", "", "what has forked ends by itself"},
		tolerated{"0:clone3:1", "", "it joins by cgroup.procs, as where there is no clone3"},
		tolerated{"1:openat /bin/true", "", "only that it is a directory would be an error"},
		tolerated{"1:sched_setaffinity", "", "the process keeps the CPUs of its caller"},
		tolerated{"[12]:close_range", "ENOSYS", "the descriptors are marked one by one"},
		tolerated{"[12]:keyctl", "ENOSYS EPERM", "no keyring of its own, as where the kernel has none"},
		tolerated{"0:newfstatat .*/cgroup.freeze|0:(openat|read) .*config.json", "", "who may freeze its cgroup is not known, so it enters that by its own hand"},
		tolerated{"1:setgroups:2", "EPERM", "the first has let go of all groups, and the process is to have none"},
		tolerated{"2:setsid", "EPERM", "it leads a session already"},
		tolerated{"2:openat /bin/true", "", "only that it is a folder would be an error"},
	)
	fail(t, "exec", nil, []string{"/bin/true"}, start, nil, undo, fine)
}

// afterCreate: what failed has left nothing; what worked is there, and can be deleted.
func afterCreate(t *testing.T, w *worker, about string, worked bool) {
	t.Helper()
	if !worked {
		return
	}
	if r := w.c.Command("state", nil).Run(); r.Code != 0 {
		t.Errorf("%s: created, and state says %s", about, r.Stderr)
	}
	w.force(t, about)
}
