package integration

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/test/harness"
)

// mistake is a command line that is wrong, and all that is said about it. $id is the container,
// $bundle its bundle, $root the root directory, and $empty a directory in which there is nothing
// but "open", which others may write to. Where the machine or the kernel has a word of its own in
// the message stands "…".
type mistake struct{ line, message string }

var (
	mistakesWithNone = []mistake{
		{"state nobody", "container does not exist: nobody (not found in $root; --root selects another state directory)"},
		{"top nobody", "container does not exist: nobody (not found in $root; --root selects another state directory)"},
		{"create", "berth create: an argument is missing: ID (see berth create --help)"},
		{"create one two", `berth create: unexpected argument "two" (see berth create --help)`},
		{"create --bundle $empty/nowhere x", `config.json: no such file or directory (there is no bundle directory "$empty/nowhere")`},
		{"create --bundle $empty x", `config.json: no such file or directory (the bundle "$empty" has none: name another one, or write one by berth spec)`},
		{"create --bundle $bundle a/b", `container id "a/b": the character '/' is not one of [A-Za-z0-9_+.-]`},
		{"restore --bundle $bundle --image-path $empty/nowhere x", "--image-path: open $empty/nowhere: no such file or directory (berth checkpoint creates the directory; pass another one if this is not it)"},
		{"frobnicate", `berth: unknown command "frobnicate" (see berth --help)`},
		{"list --frobnicate", "berth list: unknown option --frobnicate (see berth list --help)"},
		{"list --format yaml", `--format "yaml": it is table or json`},
		{"--log-format xml list", `--log-format "xml": it is either text or json`},
		{"--rootless maybe list", `--rootless "maybe": it is true, false or auto`},
		{"--cgroup-manager other list", `--cgroup-manager "other": it is cgroupfs, systemd, auto or disabled`},
		{"--log $empty/nowhere/log list", "--log: open $empty/nowhere/log: no such file or directory"},
		{"--root= list", "--root: it is empty (leave it out for …)"},
		{"--root $bundle/config.json state x", "state root $bundle/config.json: not a directory"},
		{"--root $empty/open state x", "state root $empty/open: others may write to it (owner …, mode 777); chown it to yourself and chmod it to 0700, or choose another with --root"},
		{"spec --bundle $bundle", "$bundle/config.json exists and is not overwritten; remove it first"},
		{"spec --bundle $empty/nowhere", "--bundle $empty/nowhere: no such directory"},
		{"explain $empty/nowhere", `config.json: no such file or directory (there is no bundle directory "$empty/nowhere")`},
		{"completion tcsh", `there are completions for bash, zsh, fish, not for "tcsh"`},
		{"top -d x", `berth top: option --delay: "x" is not a time from 0.1 to 86400 seconds (see berth top --help)`},
		{"events --interval -1s x", `berth events: option --interval: "-1s" is not a length of time such as 1s or 500ms (see berth events --help)`},
		{"seccomp explain default frobnicate", `default: no architecture has a system call "frobnicate"`},
		{"seccomp explain $empty/nowhere", "open $empty/nowhere: no such file or directory"},
		{"cgroup get /berth-nowhere", "open the cgroup /berth-nowhere: no such file or directory (berth cgroup tree shows those that there are)"},
		{"cgroup delete /", "delete /: the root of a hierarchy cannot be removed"},
		{"cgroup set", "no cgroup is named: give its path, or -g controllers:path"},
	}
	mistakesWithRunning = []mistake{
		{"create --bundle $bundle $id", "container already exists: $id (in $root; choose another id, or remove that one by berth delete)"},
		{"start $id", "container $id: cannot start an already running container"},
		{"delete $id", "cannot delete container $id: container is still running (it is running; stop it first, or use --force)"},
		{"resume $id", "cannot resume container $id: container not paused"},
		{"kill $id FROB", `unknown signal "FROB": it is a name such as TERM, SIGTERM or RTMIN+3, or a number`},
		{"kill $id 99", "signal 99: there are 1 to 64, and 0 to probe"},
		{"update --memory lots $id", `berth update: option --memory: "lots" is not a size such as 1048576, 10m or 1.5G, nor -1 for no limit (see berth update --help)`},
		{"update --cpuset-cpus x $id", `--cpuset-cpus: expected a list like 0-3,7, found "x"`},
		{"update --blkio-weight 5000 $id", "--blkio-weight: expected 10 to 1000, found 5000"},
		{"update --cpu-period 1 $id", "--cpu-period: expected 1000 to 1000000 microseconds, found 1"},
		{"update -r $empty/nowhere $id", "--resources: open $empty/nowhere: no such file or directory"},
		{"ps --format yaml $id", `--format "yaml": it is table or json`},
		{"ps $id --frobnicate", "ps --frobnicate: exit status 1: …"},
		{"exec $id", "no command to run is given, nor --process"},
		{"exec $id frobnicate", `process: /args/0: exec: "frobnicate": executable file not found in $PATH`},
		{"exec $id /no/such", `process: /args/0: exec: "/no/such": no such file or directory`},
		{"exec $id /etc", `process: /args/0: exec: "/etc": is a directory (permission denied)`},
		{"exec --cwd etc $id true", `process: /cwd: expected an absolute path, found "etc"`},
		{"exec --cwd /no/such $id true", "process: /cwd: change to /no/such: no such file or directory"},
		{"exec --user frob $id true", `--user: user "frob": no such entry in the container's /etc/passwd (a number needs none)`},
		{"exec --user 1:frob $id true", `--user: group "frob": no such entry in the container's /etc/group (a number needs none)`},
		{"exec --env =x $id true", `process: /env/…: has an empty name before the equals sign: "=x"`},
		{"exec --cgroup ../x $id true", "--cgroup ../x: it leads out of the container's cgroup (name one below it, without \"..\")"},
		{"exec --process $empty/nowhere $id", "--process: open $empty/nowhere: no such file or directory"},
		{"exec -d -t $id true", `cannot allocate a terminal: the process has "terminal": true, and nothing would receive it; pass --console-socket`},
		{"exec --console-socket $empty/s $id true", `--console-socket is given, but the process has no "terminal": true`},
		{"exec --preserve-fds -1 $id true", "--preserve-fds -1: it can't be less than none"},
		{"exec --preserve-fds 99 $id true", "--preserve-fds 99: descriptor … was not passed to berth: bad file descriptor"},
	}
	mistakesWithPaused = []mistake{
		{"pause $id", "cannot pause container $id: it is paused (container not running)"},
		{"start $id", "container $id: cannot start a paused container (resume it first)"},
		{"exec $id true", "container $id: cannot exec in a paused container (resume it, or use --ignore-paused)"},
		{"delete $id", "cannot delete container $id: container is still running (it is paused; stop it first, or use --force)"},
	}
	mistakesWithStopped = []mistake{
		{"kill $id", "cannot signal container $id: it has ended (container not running)"},
		{"exec $id true", "container $id: cannot exec in a stopped container"},
		{"start $id", "container $id: cannot start a container that has stopped (delete it, and create it again)"},
		{"pause $id", "cannot pause container $id: it is stopped (container not running)"},
		{"update --memory 10m $id", "cannot update container $id: it is stopped (container not running)"},
		{"events $id", "cannot watch container $id: it is stopped (container not running)"},
		{"events --stats $id", "cannot read the counters of container $id: it is stopped (container not running)"},
	}
)

// Each mistake has its one line, word by word: who reads it at night knows what failed on what, and
// what to do.
func TestMessages(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/inside", "hang")
	c.Write()
	empty := b.Path("empty")
	for path, mode := range map[string]os.FileMode{empty: 0o755, empty + "/open": 0o777} {
		if err := os.MkdirAll(path, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil { // whatever the umask
			t.Fatal(err)
		}
	}
	fill := strings.NewReplacer("$id", c.ID, "$bundle", c.Dir, "$root", b.Root, "$empty", empty)
	check := func(state string, list []mistake) {
		t.Helper()
		for _, m := range list {
			r := b.Berth(strings.Fields(fill.Replace(m.line))...)
			code := 1
			if strings.HasPrefix(m.line, "exec ") {
				code = 255
			} else if strings.Contains(m.message, "unknown command") {
				code = 3
			}
			want := strings.ReplaceAll(regexp.QuoteMeta(fill.Replace(m.message)), "…", ".+")
			r.FailsWith(t, code)
			if message := r.Message(); !regexp.MustCompile("^" + want + "$").MatchString(message) {
				t.Errorf("%s, of a container that is %s:\n%s\nwant:\n%s", m.line, state, message, fill.Replace(m.message))
			}
		}
	}
	check("not there", mistakesWithNone)
	c.RunDetached()
	check("running", mistakesWithRunning)
	b.Berth("pause", c.ID).OK(t)
	check("paused", mistakesWithPaused)
	b.Berth("resume", c.ID).OK(t)
	c.Kill("KILL").WaitExit()
	check("stopped", mistakesWithStopped)
}

// A client parses the lines, a person at a terminal reads them.
func TestMessagesOnATerminal(t *testing.T) {
	b := harness.New(t)
	term := b.Terminal()
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"state", "nobody"}, "berth: container does not exist: nobody (not found in " + b.Root + "; --root selects another state directory)\r\n"},
		{[]string{"create", "--bundle", b.Path("none"), "x"}, `berth: config.json: no such file or directory (there is no bundle directory "` + b.Path("none") + `")` + "\r\n"},
	} {
		c := b.Command(test.args...)
		c.Stderr = term.Slave
		c.Run().Exits(t, 1)
		if said := term.Until("\n"); said != test.want {
			t.Errorf("%q: %q, want %q", test.args, said, test.want)
		}
	}
	c := b.Command("--log-format", "json", "state", "nobody")
	c.Stderr = term.Slave
	c.Run().Exits(t, 1)
	if said := term.Until("\n"); !strings.HasPrefix(said, `{"level":"error"`) {
		t.Errorf("as JSON: %q", said)
	}
}
