package neighbour

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/harness"
)

// TestHostileNeighbours has each principal do each of its acts at each step of each command, or a
// share of that: see the package's documentation for what chooses it.
func TestHostileNeighbours(t *testing.T) {
	r := newRun(t)
	if again := os.Getenv("BERTH_AGAIN"); again != "" {
		r.again(t, again)
		return
	}
	// They are ended one after another, when nobody works any more: what a box finds left could be
	// another one's at work.
	var scenes []*scene
	var cpus unix.CPUSet
	check(t, unix.SchedGetaffinity(0, &cpus))
	for i := range 2 {
		free := oneCPU(t, cpus, i)
		scenes = append(scenes, newScene(t, firstUser+i))
		free()
	}
	r.until = time.Now().Add(r.budget)
	var working sync.WaitGroup
	for i, s := range scenes {
		working.Add(1)
		go func() {
			defer working.Done() // also where the test is ended by runtime.Goexit
			defer oneCPU(t, cpus, i)()
			for u := r.next(); u != nil; u = r.next() {
				r.do(s, u)
			}
		}()
	}
	working.Wait()
	for _, s := range scenes {
		s.end(t)
	}
	scenes[0].b.ReapOrphans()
	r.report(t)
}

// oneCPU keeps what the caller starts on one of the CPUs until free is called. A step goes to and
// fro between tracer, traced, agent and this process, and a third of the time went into waking a
// CPU that had nothing else to do.
func oneCPU(t *testing.T, cpus unix.CPUSet, n int) (free func()) {
	t.Helper()
	n %= cpus.Count()
	var one unix.CPUSet
	for cpu := 0; one.Count() == 0; cpu++ {
		if cpus.IsSet(cpu) {
			if n == 0 {
				one.Set(cpu)
			}
			n--
		}
	}
	runtime.LockOSThread()
	check(t, unix.SchedSetaffinity(0, &one))
	return func() {
		check(t, unix.SchedSetaffinity(0, &cpus))
		runtime.UnlockOSThread()
	}
}

// A series is a kind of container and a command: with all acts that are undone again, each at each
// step that it can bear on, or with one act that stays, at one step.
type series struct {
	shape   shape
	command command
	acts    []act
	once    *act
	place   int // of places, for once: how far on in the command
}

// places is how many of a command's steps an act is tried at that is not undone before the next
// step, of those that make a difference to it.
const places = 3

// firstUser and the one after it are nobody's on a host, nor another run's of these tests.
var firstUser = 50_000 + os.Getpid()%5_000*2

// run is all that is tried, and what came of it.
type run struct {
	seed   uint64
	budget time.Duration
	until  time.Time // set once the scenes are there
	whole  int
	mu     sync.Mutex
	todo   []*series
	counts counts
	missed int // trials in which the act did not come to pass: it has ended who did it, as a rule
	holes  map[string]*hole
	steps  map[string][]step // of commands that nobody disturbs
}

func newRun(t *testing.T) *run {
	t.Helper()
	seed, budget := share(t)
	only, err := regexp.Compile(os.Getenv("BERTH_ONLY"))
	check(t, err)
	r := &run{seed: seed, budget: budget, holes: map[string]*hole{}, steps: map[string][]step{}, counts: counts{by: map[string]int{}}}
	_, noCriu := harness.Criu()
	if noCriu != nil {
		t.Logf("left out, checkpoint and restore: %v", noCriu)
	}
	for _, sh := range shapes {
		if err := harness.ChosenPids(); err != nil && sh.name == "pod" {
			t.Logf("left out, the shape pod: %v", err)
			continue
		}
		for _, c := range commands {
			if c.byCriu() && noCriu != nil {
				continue
			}
			var passing []act
			for _, a := range acts("OUTSIDE") {
				switch {
				case !a.isFor(sh, c) || !only.MatchString(sh.name+"|"+c.String()+"|"+a.String()):
				case a.once:
					for place := range places {
						r.todo = append(r.todo, &series{shape: sh, command: c, once: &a, place: place})
					}
				default:
					passing = append(passing, a)
				}
			}
			if len(passing) > 0 {
				r.todo = append(r.todo, &series{shape: sh, command: c, acts: passing})
			}
		}
	}
	random := rand.New(rand.NewPCG(seed, 0))
	random.Shuffle(len(r.todo), func(i, j int) { r.todo[i], r.todo[j] = r.todo[j], r.todo[i] })
	r.whole = len(r.todo)
	return r
}

// next is what to try next, nil when it is enough.
func (r *run) next() *series {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.todo) == 0 || time.Now().After(r.until) {
		return nil
	}
	u := r.todo[0]
	r.todo = r.todo[1:]
	return u
}

func (r *run) do(s *scene, u *series) {
	if u.once != nil {
		r.once(s, u)
		return
	}
	r.sweep(s, u)
}

// mostTrials bounds a sweep: an act may make steps that there were not.
const mostTrials = 600

// sweep does each of the acts at each of the steps that it can bear on, another one at each step of
// a trial, until none is left.
func (r *run) sweep(s *scene, u *series) {
	random := rand.New(rand.NewPCG(r.seed, 1))
	random.Shuffle(len(u.acts), func(i, j int) { u.acts[i], u.acts[j] = u.acts[j], u.acts[i] })
	tried := map[string]bool{}
	for n := 0; n < mostTrials && !time.Now().After(r.until); n++ {
		t := r.trial(s, u.shape, u.command, func(st step) *act {
			for i := range u.acts {
				if a := &u.acts[i]; a.bearsOn(st) && !tried[st.key+a.String()] {
					tried[st.key+a.String()] = true
					return a
				}
			}
			return nil
		})
		if len(t.deeds) == 0 {
			return
		}
	}
}

// once does an act that stays at one of the steps that it makes a difference to: between two of
// them it does the same wherever it is done.
func (r *run) once(s *scene, u *series) {
	key := u.shape.name + " " + u.command.String()
	r.mu.Lock()
	steps := r.steps[key]
	r.mu.Unlock()
	if steps == nil {
		steps = r.trial(s, u.shape, u.command, func(step) *act { return nil }).steps
		r.mu.Lock()
		r.steps[key] = steps
		r.mu.Unlock()
	}
	var at []step
	for _, st := range steps {
		if u.once.bearsOn(st) {
			at = append(at, st)
		}
	}
	n := u.place
	if len(at) > places {
		// The seed shifts them: all steps get their turn, day by day.
		part := len(at) / places
		n = u.place*part + int(r.seed)%part
	}
	if n >= len(at) {
		return
	}
	t := r.make(s, &trial{shape: u.shape, command: u.command, only: at[n].at, at: func(step) *act { return u.once }})
	if len(t.deeds) == 0 {
		r.mu.Lock()
		r.missed++
		r.mu.Unlock()
	}
}

// trial makes one that is stopped at each step.
func (r *run) trial(s *scene, sh shape, c command, at func(step) *act) *trial {
	return r.make(s, &trial{shape: sh, command: c, at: at})
}

// make makes a trial, counts it, and finds out what is to blame for what has been broken.
func (r *run) make(s *scene, t *trial) *trial {
	t.s, t.at = s, s.placed(t.at)
	t.run()
	r.mu.Lock()
	r.counts.add(t)
	r.mu.Unlock()
	if len(t.broken) > 0 {
		r.blame(s, t)
	}
	return t
}

// placed puts the canary's directory into the words of acts.
func (s *scene) placed(at func(step) *act) func(step) *act {
	return func(st step) *act {
		a := at(st)
		if a == nil {
			return nil
		}
		b := *a
		b.do = strings.ReplaceAll(b.do, "OUTSIDE", s.canary.outside)
		return &b
	}
}

// blame finds the deed that did it: of the shortest beginning of what was done that still does, the
// last.
func (r *run) blame(s *scene, t *trial) {
	if !r.news(t) {
		return
	}
	if found := t.with(nil); len(found.broken) > 0 {
		r.found(found, "nothing at all", againWords(t, nil))
		return
	}
	least, most := 0, len(t.deeds) // of those from the first on: so many are too few, and so many enough
	for most-least > 1 {
		middle := (least + most) / 2
		if len(t.with(t.deeds[:middle]).broken) > 0 {
			most = middle
		} else {
			least = middle
		}
	}
	if most > 0 {
		d := t.deeds[most-1]
		if found := t.with(t.deeds[most-1 : most]); len(found.broken) > 0 {
			r.found(found, d.String(), againWords(t, &d))
			return
		}
	}
	r.found(t, fmt.Sprintf("the first %d acts of %v, but not each time", most, t.deeds[max(0, most-3):most]), "")
}

// with makes a trial like t with some of its deeds.
func (t *trial) with(deeds []deed) *trial {
	again := &trial{s: t.s, shape: t.shape, command: t.command, at: func(st step) *act {
		for i := range deeds {
			if deeds[i].step.at == st.at {
				return &deeds[i].act
			}
		}
		return nil
	}}
	if len(deeds) == 1 {
		again.only = deeds[0].step.at
	}
	again.run()
	return again
}
