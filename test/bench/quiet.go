package main

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// quiet is the waiting for the CPUs to be idle before a round begins.
type quiet struct {
	left time.Duration // how long may still be waited, in all
	busy int           // rounds that were begun on a busy machine
}

const (
	quietLook  = 50 * time.Millisecond // the kernel counts in hundredths of a second
	quietShare = 0.9                   // of the CPUs' time
	quietMost  = 3 * time.Second       // for one round
)

// await waits until the CPUs have been idle for a moment.
func (q *quiet) await() {
	began := time.Now()
	for {
		idle, all := cpuTime()
		time.Sleep(quietLook)
		idle2, all2 := cpuTime()
		if all2 > all && float64(idle2-idle) >= quietShare*float64(all2-all) {
			break
		}
		if took := time.Since(began); took > quietMost || took > q.left {
			q.busy++
			break
		}
	}
	q.left -= time.Since(began) - quietLook
}

// cpuTime is how long the CPUs have been idle, and have been at all.
func cpuTime() (idle, all int64) {
	text, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(text), "\n")
	for i, field := range strings.Fields(line) {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil || i > 8 { // the time of guests is in the others already
			continue
		}
		if all += n; i == 4 || i == 5 { // idle, waiting for a disk
			idle += n
		}
	}
	return idle, all
}
