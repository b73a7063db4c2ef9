package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
)

// sample is one turn.
type sample struct {
	value float64 // milliseconds, or what the row's unit says
	cpu   float64 // milliseconds of CPU of the command and of what it waited for
	pages float64 // page faults of the same
}

// contender is what takes turns in a row.
type contender struct {
	name string
	turn func() (sample, error)
}

// turns measures contenders in turns. One that fails is out, and its cell says why.
func (b *bench) turns(row *Row, pause time.Duration, contenders []contender) {
	b.turnsOf(row, pause, b.rounds, contenders)
}

func (b *bench) turnsOf(row *Row, pause time.Duration, rounds int, contenders []contender) {
	b.measure(row, pause, rounds, 0, contenders)
}

// burst is how often a contender has its turn again, after the one that brings it and the
// machine into the state of one that does so all the time: some writes to cgroups wait for
// a grace period of RCU that another's turn in between would have them wait for anew.
const burst = 5

// bursts measures contenders in turns of several each, the first of which is not counted.
func (b *bench) bursts(row *Row, contenders []contender) {
	b.measure(row, 0, (b.rounds+burst-1)/burst, burst, contenders)
}

// measure has each contender take its turn in each round: one, or so many after one that is
// not counted.
func (b *bench) measure(row *Row, pause time.Duration, rounds, counted int, contenders []contender) {
	samples := make([][]sample, len(contenders))
	failed := make([]error, len(contenders))
	for round := range rounds {
		b.quiet.await()
		for i := range contenders {
			// Each round begins with another, so that none always comes after the same.
			at := (i + round) % len(contenders)
			time.Sleep(pause)
			for turn := range 1 + counted {
				if failed[at] != nil || b.stopped.Load() {
					break
				}
				s, err := contenders[at].turn()
				if err != nil {
					failed[at] = err
					progress("%s: %s: %v", row.Name, contenders[at].name, err)
				} else if turn > 0 || counted == 0 {
					samples[at] = append(samples[at], s)
				}
			}
		}
	}
	for i, c := range contenders {
		row.Cells = append(row.Cells, cellOf(c.name, samples[i], failed[i]))
	}
	b.report.add(row)
}

func cellOf(name string, samples []sample, failed error) Cell {
	if failed != nil {
		return Cell{Contender: name, Failed: failed.Error()}
	}
	if len(samples) == 0 {
		return Cell{Contender: name, Failed: "not measured"}
	}
	values, cpu, pages := make([]float64, len(samples)), make([]float64, len(samples)), make([]float64, len(samples))
	for i, s := range samples {
		values[i], cpu[i], pages[i] = s.value, s.cpu, s.pages
	}
	return Cell{Contender: name, Median: median(values), Min: slices.Min(values), Max: slices.Max(values), CPU: median(cpu), Faults: median(pages), Rounds: len(samples)}
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n == 0 {
		return 0
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

func milliseconds(d time.Duration) float64 { return float64(d) / 1e6 }

// begin starts a command without going through package os/exec: no goroutine and
// no pipe of ours is in what is measured. What it says goes to a file.
func (b *bench) begin(words []string, dir string) (*os.Process, *os.File, error) {
	said, err := os.CreateTemp(b.dir, "said-")
	if err != nil {
		return nil, nil, err
	}
	_ = os.Remove(said.Name())
	p, err := os.StartProcess(words[0], words, &os.ProcAttr{Dir: dir, Env: os.Environ(), Files: []*os.File{b.null, said, said}})
	if err != nil {
		said.Close()
		return nil, nil, err
	}
	return p, said, nil
}

// time runs a command to its end.
func (b *bench) time(words []string) (sample, error) {
	begun := time.Now()
	p, said, err := b.begin(words, "")
	if err != nil {
		return sample{}, err
	}
	return finish(p, said, begun, words)
}

func finish(p *os.Process, said *os.File, begun time.Time, words []string) (sample, error) {
	defer said.Close()
	state, err := p.Wait()
	took := time.Since(begun)
	if err != nil {
		return sample{}, err
	}
	if !state.Success() {
		return sample{}, fmt.Errorf("%s: %s: %s", strings.Join(words[:min(len(words), 4)], " "), state, output(said))
	}
	usage := state.SysUsage().(*syscall.Rusage)
	cpu := time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	return sample{value: milliseconds(took), cpu: milliseconds(cpu), pages: float64(usage.Minflt + usage.Majflt)}, nil
}

func output(said *os.File) string {
	text := make([]byte, 2000)
	n, _ := said.ReadAt(text, 0)
	return strings.TrimSpace(string(text[:n]))
}

// keep gives another descriptor of what a command says, for after its end.
func keep(said *os.File) *os.File {
	fd, err := syscall.Dup(int(said.Fd()))
	if err != nil {
		return nil // output of it is empty then
	}
	return os.NewFile(uintptr(fd), said.Name())
}
