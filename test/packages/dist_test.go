package packages

import (
	"debug/elf"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// dist makes what is released, once for all tests. It is all in one directory, which TestMain
// removes.
var dist = sync.OnceValues(func() (string, error) {
	out := filepath.Join(work, "dist")
	text, err := exec.Command("../../build/scripts/dist", out).CombinedOutput()
	if err != nil {
		return string(text), err
	}
	return out, nil
})

var work string

func TestMain(m *testing.M) {
	var err error
	if work, err = os.MkdirTemp("", "berth-dist-"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(work)
	os.Exit(code)
}

// made is the directory that build/scripts/dist has filled.
func made(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git, which knows the commit that is released")
	}
	out, err := dist()
	if err == nil {
		return out
	}
	for _, words := range []string{"no such host", "Forbidden", "dial tcp", "i/o timeout", "proxyconnect"} {
		if strings.Contains(out, words) {
			t.Skipf("needs the modules of build/tools/go.mod, which can't be had here: %s", out)
		}
	}
	t.Fatalf("build/scripts/dist: %v\n%s", err, out)
	return ""
}

// run is the output of a command that succeeds.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// unpacked is the archive of an architecture, unpacked.
func unpacked(t *testing.T, arch string) string {
	t.Helper()
	dir := t.TempDir()
	archives, err := filepath.Glob(filepath.Join(made(t), "berth-*-linux-"+arch+".tar.gz"))
	if err != nil || len(archives) != 1 {
		t.Fatalf("archives for %s: %q, %v", arch, archives, err)
	}
	run(t, "tar", "-C", dir, "-xzf", archives[0])
	return dir
}

func TestDistIsWhole(t *testing.T) {
	out := made(t)
	var got []string
	files, err := os.ReadDir(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		got = append(got, f.Name())
	}
	for _, pattern := range []string{
		"berth-*-linux-amd64.tar.gz", "berth-*-linux-arm64.tar.gz", "berth_*_amd64.deb", "berth_*_arm64.deb", "berth-*.x86_64.rpm", "berth-*.aarch64.rpm",
		"berth-*-linux-amd64.spdx.json", "containerd-shim-berth-v2-*-linux-arm64.spdx.json", "SHA256SUMS",
	} {
		if !slices.ContainsFunc(got, func(name string) bool { ok, _ := filepath.Match(pattern, name); return ok }) {
			t.Errorf("no %s among %q", pattern, got)
		}
	}
	check := exec.Command("sha256sum", "--check", "--strict", "SHA256SUMS")
	check.Dir = out
	if said, err := check.CombinedOutput(); err != nil || strings.Count(string(said), ": OK") != len(got)-1 {
		t.Errorf("%v\n%s", err, said)
	}
	for _, name := range got {
		if !strings.HasSuffix(name, ".spdx.json") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			t.Fatal(err)
		}
		var sbom struct {
			SPDXVersion string
			Packages    []struct{ Name, LicenseConcluded, LicenseDeclared string }
		}
		if err := json.Unmarshal(text, &sbom); err != nil || sbom.SPDXVersion == "" || len(sbom.Packages) < 3 {
			t.Fatalf("%s: %v, %+v", name, err, sbom)
		}
		if sbom.Packages[0].LicenseDeclared != "Apache-2.0" {
			t.Errorf("%s: the program's licence is %q", name, sbom.Packages[0].LicenseDeclared)
		}
		for _, p := range sbom.Packages {
			if p.LicenseConcluded == "" || p.LicenseConcluded != p.LicenseDeclared {
				t.Errorf("%s: the licence of %s is %q, declared %q", name, p.Name, p.LicenseConcluded, p.LicenseDeclared)
			}
		}
	}
}

// With a package or an archive comes the licence, and the notices of what is linked
// in.
func TestLicenceComesAlong(t *testing.T) {
	want, err := os.ReadFile("../../LICENSE")
	if err != nil || !strings.Contains(string(want), "Apache License") {
		t.Fatalf("LICENSE: %v\n%.200s", err, want)
	}
	deb := func(t *testing.T) string {
		dir := t.TempDir()
		files, err := filepath.Glob(filepath.Join(made(t), "berth_*_amd64.deb"))
		if err != nil || len(files) != 1 {
			t.Fatalf("%q, %v", files, err)
		}
		if _, err := exec.LookPath("dpkg-deb"); err != nil {
			t.Skip("needs dpkg-deb (Debian: dpkg)")
		}
		run(t, "dpkg-deb", "-x", files[0], dir)
		return filepath.Join(dir, "usr")
	}
	for name, unpack := range map[string]func(*testing.T) string{
		"archive": func(t *testing.T) string { return unpacked(t, "arm64") },
		"deb":     deb,
	} {
		t.Run(name, func(t *testing.T) {
			doc := filepath.Join(unpack(t), "share/doc/berth")
			if got, err := os.ReadFile(filepath.Join(doc, "LICENSE")); err != nil || string(got) != string(want) {
				t.Errorf("LICENSE: %v, %d bytes", err, len(got))
			}
			got, err := os.ReadFile(filepath.Join(doc, "copyright"))
			if err != nil {
				t.Fatal(err)
			}
			text := string(got)
			if !strings.HasPrefix(text, "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n") {
				t.Errorf("copyright is not in Debian's format:\n%.200s", text)
			}
			// Every module that a program is linked from is named, and every licence that is named
			// is told.
			programs, err := filepath.Glob(filepath.Join(doc, "../../../bin", "*"))
			if err != nil || len(programs) != 3 {
				t.Fatalf("%q, %v", programs, err)
			}
			for _, program := range programs {
				for line := range strings.Lines(run(t, "go", "version", "-m", program)) {
					if f := strings.Fields(line); f[0] == "dep" && !strings.Contains(text, "vendor/"+f[1]+"/*") {
						t.Errorf("copyright does not name %s, which %s is linked from", f[1], filepath.Base(program))
					}
				}
			}
			for paragraph := range strings.SplitSeq(text, "\n\n") {
				if _, licence, ok := strings.Cut(paragraph, "\nLicense: "); ok {
					licence, _, _ = strings.Cut(licence, "\n")
					if !strings.Contains(text, "\n\nLicense: "+licence+"\n ") {
						t.Errorf("copyright names the licence %s without its text", licence)
					}
				}
			}
		})
	}
}

func TestProgramsAreStatic(t *testing.T) {
	for arch, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		programs, err := filepath.Glob(filepath.Join(unpacked(t, arch), "bin", "*"))
		if err != nil || len(programs) != 3 {
			t.Fatalf("%q, %v", programs, err)
		}
		for _, name := range programs {
			f, err := elf.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			if f.Machine != machine {
				t.Errorf("%s is for %s", name, f.Machine)
			}
			for _, p := range f.Progs {
				if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
					t.Errorf("%s is not static: it has a %s", name, p.Type)
				}
			}
			f.Close()
		}
	}
}

// On an arm64 machine, as far as a user-mode emulator is one.
func TestARM64(t *testing.T) {
	qemu, err := exec.LookPath("qemu-aarch64-static")
	if err != nil {
		t.Skip("needs qemu-aarch64-static (Debian: qemu-user-static)")
	}
	berth := filepath.Join(unpacked(t, "arm64"), "bin", "berth")
	if out := run(t, qemu, berth, "--version"); !strings.HasPrefix(out, "berth version ") || strings.Contains(out, "unknown") {
		t.Errorf("%q", out)
	}
	var features struct {
		Linux struct{ Namespaces []string }
	}
	if err := json.Unmarshal([]byte(run(t, qemu, berth, "features")), &features); err != nil || len(features.Linux.Namespaces) < 7 {
		t.Errorf("%v, %+v", err, features)
	}
}

func TestRPM(t *testing.T) {
	if _, err := exec.LookPath("rpm"); err != nil {
		t.Skip("needs rpm (Debian: rpm)")
	}
	files, err := filepath.Glob(filepath.Join(made(t), "*.x86_64.rpm"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%q, %v", files, err)
	}
	list := strings.Fields(run(t, "rpm", "-qpl", "--dbpath", t.TempDir(), files[0]))
	for _, want := range []string{"/usr/bin/berth", "/usr/bin/containerd-shim-berth-v2", "/usr/share/man/man1/berth-run.1.gz", "/usr/share/zsh/site-functions/_berth", "/usr/share/doc/berth/copyright"} {
		if !slices.Contains(list, want) {
			t.Errorf("no %s in %q", want, list)
		}
	}
	if out := run(t, "rpm", "-qp", "--queryformat", "%{LICENSE}", "--dbpath", t.TempDir(), files[0]); out != "Apache-2.0 AND BSD-3-Clause" {
		t.Errorf("the package's licence is %q", out)
	}
	if out := run(t, "rpm", "--checksig", "--nosignature", "--dbpath", t.TempDir(), files[0]); !strings.Contains(out, "digests OK") {
		t.Errorf("%q", out)
	}
}
