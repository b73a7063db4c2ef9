package sysnum

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// x/sys has the numbers of most architectures too, from the headers of a newer kernel, made by
// another generator.
func TestAgainstXSys(t *testing.T) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "golang.org/x/sys").Output()
	if err != nil {
		t.Skipf("the source of golang.org/x/sys is not at hand: %v", err)
	}
	line := regexp.MustCompile(`(?m)^\s+SYS_(\w+)\s+= (\d+)`)
	for goarch, table := range map[string]*Table{
		"386": &X86, "amd64": &X86_64, "arm": &ARM, "arm64": &ARM64, "loong64": &LOONGARCH64, "mips": &MIPSO32, "mipsle": &MIPSO32,
		"mips64": &MIPSN64, "mips64le": &MIPSN64, "ppc": &PPC, "ppc64": &PPC64, "ppc64le": &PPC64, "riscv64": &RISCV64, "s390x": &S390X,
	} {
		file := filepath.Join(strings.TrimSpace(string(dir)), "unix", "zsysnum_linux_"+goarch+".go")
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		seen, last := 0, uint64(0)
		for _, m := range line.FindAllStringSubmatch(string(data), -1) {
			name := strings.ToLower(m[1])
			want, err := strconv.ParseUint(m[2], 10, 32)
			if err != nil {
				t.Fatal(err)
			}
			if name == "syscall_mask" || name == "arch_specific_syscall" || strings.HasPrefix(name, "unused") || strings.HasPrefix(name, "reserved") {
				continue // no calls
			}
			if name == "sync_file_range2" && goarch == "arm" {
				continue // a second name for the number of arm_sync_file_range
			}
			got, ok := table.NumberOf(name)
			if !ok || uint64(got) != want {
				t.Errorf("%s: %s is %d (%v), by x/sys %d", goarch, name, got, ok, want)
			}
			seen, last = seen+1, max(last, want)
		}
		// And nothing here is missing there, but for ARM's own calls and what is newer than that
		// release of x/sys.
		own := 0
		for _, number := range table.All {
			if uint64(number) <= last {
				own++
			}
		}
		if seen < 300 || own > seen+2 {
			t.Errorf("%s: %d calls here, %d in x/sys", goarch, own, seen)
		}
	}
}

func TestNames(t *testing.T) {
	all := slices.Collect(Names)
	if !slices.IsSorted(all) || len(all) != count || all[0] == "" {
		t.Fatalf("%d names from %q on are not sorted", len(all), all[0])
	}
	for i, name := range all {
		if id, ok := Find(name); !ok || int(id) != i {
			t.Errorf("%s is found at %d (%v), not %d", name, id, ok, i)
		}
		for _, no := range []string{name + "\x00", name[:len(name)-1] + "~"} {
			if _, ok := Find(no); ok {
				t.Errorf("%q is found", no)
			}
		}
	}
	for _, no := range []string{"", "a", "zzz", "~"} {
		if id, ok := Find(no); ok {
			t.Errorf("%q is found at %d", no, id)
		}
	}
}

func TestNumbers(t *testing.T) {
	for _, test := range []struct {
		table *Table
		name  string
		want  uint32
	}{
		{&X86_64, "read", 0}, {&X86, "read", 3}, {&X32, "read", 0x40000000}, {&X32, "execve", 0x40000000 + 520},
		{&MIPSO32, "read", 4003}, {&MIPSN64, "read", 5000}, {&MIPSN32, "read", 6000},
		{&ARM, "cacheflush", 0x0f0002}, {&ARM, "get_tls", 0x0f0006}, {&ARM64, "openat", 56}, {&RISCV64, "riscv_flush_icache", 259},
		{&S390, "mmap", 90}, {&S390X, "mmap", 90}, {&PARISC, "_llseek", 140}, {&PPC, "mmap2", 192}, {&M68K, "cacheflush", 123}, {&SH, "cacheflush", 123},
	} {
		if got, ok := test.table.NumberOf(test.name); !ok || got != test.want {
			t.Errorf("%s is %d (%v), want %d", test.name, got, ok, test.want)
		}
		if name, ok := test.table.NameOf(test.want); !ok || name != test.name {
			t.Errorf("%d is %q (%v), want %s", test.want, name, ok, test.name)
		}
	}
	for _, test := range []struct {
		table *Table
		name  string
	}{{&X86_64, "waitpid"}, {&ARM64, "open"}, {&X86, "set_tls"}, {&PARISC64, "_llseek"}, {&ARM, "socketcall"}} {
		if got, ok := test.table.NumberOf(test.name); ok {
			t.Errorf("%s is %d, and is to be missing", test.name, got)
		}
	}
	if name, ok := X86_64.NameOf(100000); ok {
		t.Errorf("100000 is %s", name)
	}
}

func BenchmarkFind(b *testing.B) {
	for b.Loop() {
		Find("epoll_pwait2")
	}
}
