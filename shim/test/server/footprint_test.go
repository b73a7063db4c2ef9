package server_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/anypb"

	"github.com/berth-runtime/berth/shim/internal/bundle/options"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
)

// pss is the memory of a process in KiB, what it shares with others divided by
// their number.
func (n *node) pss(pid int) (kib float64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	n.must(err)
	_, after, _ := strings.Cut(string(text), "\nPss:")
	fmt.Sscan(after, &kib)
	return kib
}

// BenchmarkStart is the time from executing a shim to its address.
func BenchmarkStart(b *testing.B) {
	n := newNode(b)
	i := 0
	for b.Loop() {
		b.StopTimer()
		id := fmt.Sprint("c", i)
		dir := n.bundle(id, n.spec(id, "true"))
		b.StartTimer()
		address, err := n.tryStart(id, dir)
		b.StopTimer()
		n.must(err)
		s := n.connect(address)
		s.shutdown()
		s.gone()
		i++
		b.StartTimer()
	}
}

// BenchmarkMemory is what shims cost that have nothing to do, for each of twenty
// containers, by how many of these share one.
func BenchmarkMemory(b *testing.B) {
	for _, grouping := range []string{options.PerContainer, options.PerNamespace} {
		b.Run(grouping, func(b *testing.B) {
			for b.Loop() {
				n := newNode(b)
				own := &wire.BerthOptions{Grouping: grouping, Runc: &wire.RuncOptions{Root: n.dir + "/engine"}}
				n.options = &anypb.Any{TypeUrl: wire.BerthOptionsURL, Value: wire.Marshal(own)}
				var boxes []*box
				shims := map[int]bool{}
				const count = 20
				for i := range count {
					c := n.run(fmt.Sprint("c", i), "sleep", "1000")
					boxes = append(boxes, c)
					shims[c.shim.pid] = true
				}
				time.Sleep(4 * time.Second) // until they have given memory back
				total := 0.0
				for pid := range shims {
					total += n.pss(pid)
				}
				b.ReportMetric(total/count, "KiB/container")
				b.ReportMetric(float64(len(shims)), "shims")
				for _, c := range boxes {
					c.remove()
				}
			}
		})
	}
}
