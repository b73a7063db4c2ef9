package device

import (
	"math/rand/v2"
	"testing"

	"github.com/berth-runtime/berth/internal/sys"
)

// BenchmarkLoad is what each container on v2 pays for its device filter.
func BenchmarkLoad(b *testing.B) {
	p, err := Fold(Defaults())
	if err != nil {
		b.Fatal(err)
	}
	r := rand.New(rand.NewPCG(7, 8))
	many := randomRules(r, 400)
	for i := range many {
		many[i].Major, many[i].Minor = int64(i), int64(i)<<12
	}
	for name, p := range map[string]Policy{"Defaults": p, "400Rules": fold(many), "Nothing": {}} {
		program := p.Program()
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				fd, err := sys.LoadCgroupDevice("berth_bench", program)
				if err != nil {
					b.Skipf("no BPF program can be loaded here: %v", err)
				}
				fd.Close()
			}
		})
	}
}
