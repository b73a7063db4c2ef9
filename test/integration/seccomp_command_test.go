package integration

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/harness"
)

const someProfile = `{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
	{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 95},
	{"names": ["personality"], "action": "SCMP_ACT_ERRNO", "args": [{"index": 0, "value": 8, "op": "SCMP_CMP_EQ"}]}]}`

// The file that compile writes is a filter that the kernel takes, and that does what the profile
// says.
func TestSeccompCompile(t *testing.T) {
	b := harness.New(t)
	profile := b.WriteFile("profile.json", someProfile, 0o644)
	config := b.WriteFile("config.json", `{"ociVersion": "1.3.0", "root": {"path": "x"}, "linux": {"seccomp": `+someProfile+`}}`, 0o644)
	stdin, err := os.Open(profile)
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	var first string
	for _, source := range []string{profile, config, "-"} {
		cmd := b.Command("seccomp", "compile", "--output", b.Path("filter"), source)
		if source == "-" {
			cmd.Stdin = stdin
		}
		cmd.Run().OK(t)
		data := readFile(t, b.Path("filter"))
		if len(data) == 0 || len(data)%8 != 0 || first != "" && data != first {
			t.Errorf("%s: %d bytes, of the profile alone %d", source, len(data), len(first))
		}
		first = data
	}
	if out := b.Berth("seccomp", "compile", "--output", "-", profile).OK(t).Stdout; out != first {
		t.Errorf("standard output has %d bytes, the file %d", len(out), len(first))
	}
	call := func(number int, args string) string { return "syscall=" + strconv.Itoa(number) + args }
	refused, allowed := call(unix.SYS_PERSONALITY, ",8"), call(unix.SYS_PERSONALITY, ",4294967295")
	out, err := exec.Command(harness.Helper(t), "filtered", b.Path("filter"), harness.Helper(t), "try", "mkdir="+b.Path("made"), refused, allowed).Output()
	if err != nil {
		t.Fatal(err)
	}
	got := harness.ParseAttempts(t, string(out))
	harness.Refused(t, got, "mkdir="+b.Path("made"), "EOPNOTSUPP", "ENOTSUP")
	harness.Refused(t, got, refused, "EPERM")
	harness.Allowed(t, got, allowed)
	text := b.Berth("seccomp", "compile", profile).OK(t).Stdout
	if lines := strings.Count(text, "\n"); lines != len(first)/8 || !strings.Contains(text, "return ERRNO ENOTSUP") {
		t.Errorf("%d lines for %d instructions:\n%s", lines, len(first)/8, text)
	}
	var listing struct{ Program []any }
	harness.Decode(t, b.Berth("seccomp", "compile", "--json", profile).OK(t).Stdout, &listing)
	if len(listing.Program) != len(first)/8 {
		t.Errorf("JSON has %d instructions, want %d", len(listing.Program), len(first)/8)
	}
}

// What explain says of a call is what the call meets with.
func TestSeccompExplain(t *testing.T) {
	b := harness.New(t)
	profile := b.WriteFile("profile.json", someProfile, 0o644)
	explain := func(args ...string) string {
		t.Helper()
		return b.Berth(append([]string{"seccomp", "explain"}, args...)...).OK(t).Stdout
	}
	for call, want := range map[string][]string{
		"mkdir": {"/syscalls/0", "ERRNO ENOTSUP"}, "personality": {"/syscalls/1", "ERRNO EPERM", "arg0 == 8", "ALLOW"}, "openat": {"ALLOW", "default action"},
	} {
		out := explain(profile, call)
		for _, word := range want {
			if !strings.Contains(out, word) {
				t.Errorf("explain %s does not say %q:\n%s", call, word, out)
			}
		}
	}
	if out := explain(profile); !strings.Contains(out, "personality, by its arguments") || !strings.Contains(out, "default action: ALLOW") {
		t.Errorf("the whole profile:\n%s", out)
	}
	var one struct {
		Name          string
		Architectures []struct {
			Arch, Result string
			Rules        []struct{ Pointer, Result string }
		}
	}
	harness.Decode(t, explain("--json", "--arch", "SCMP_ARCH_AARCH64", profile, "mkdirat"), &one)
	if one.Name != "mkdirat" || len(one.Architectures) == 0 || one.Architectures[0].Arch != "SCMP_ARCH_AARCH64" ||
		len(one.Architectures[0].Rules) != 1 || one.Architectures[0].Rules[0].Pointer != "/syscalls/0" {
		t.Errorf("%+v", one)
	}
	if out := explain("default", "clone3"); !strings.Contains(out, "ENOSYS") {
		t.Errorf("the default profile's clone3:\n%s", out)
	}
}

func TestSeccompCommandsRefuse(t *testing.T) {
	b := harness.New(t)
	wrong := b.WriteFile("wrong.json", `{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["mkdir"], "action": "SCMP_ACT_MAYBE"}]}`, 0o644)
	docker := b.WriteFile("docker.json", `{"defaultAction": "SCMP_ACT_ERRNO", "archMap": [], "syscalls": []}`, 0o644)
	right := b.WriteFile("right.json", someProfile, 0o644)
	for _, command := range []string{"explain", "compile"} {
		b.Berth("seccomp", command, wrong).Fails(t, wrong, "/syscalls/0/action", "SCMP_ACT_MAYBE")
		b.Berth("seccomp", command, docker).Fails(t, docker, "Docker")
		b.Berth("seccomp", command, b.Path("missing")).Fails(t, "missing", "no such file")
		b.Berth("seccomp", command, "--arch", "SCMP_ARCH_PDP11", right).Fails(t, "SCMP_ARCH_PDP11")
		if r := b.Berth("seccomp", command); r.Code == 0 {
			t.Errorf("%s without a profile is taken", command)
		}
	}
	b.Berth("seccomp", "explain", right, "no_such_call").Fails(t, "no_such_call")
	b.Berth("seccomp", "compile", "--output", "/nonexistent/filter", right).Fails(t, "/nonexistent/filter")
	unknown := b.WriteFile("unknown.json", `{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["no_such_call"], "action": "SCMP_ACT_KILL"}]}`, 0o644)
	b.Berth("seccomp", "compile", unknown).Warns(t, "/syscalls/0/names/0", "no_such_call")
}
