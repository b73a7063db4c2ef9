package neighbour

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-runtime/berth/test/harness"
)

// counts are how much was tried.
type counts struct {
	combinations, trials, refused int
	by                            map[string]int // combinations, by principal
}

func (c *counts) add(t *trial) {
	c.trials++
	if t.refused {
		c.refused++
	}
	c.combinations += len(t.deeds)
	for _, d := range t.deeds {
		c.by[d.act.by]++
	}
}

// A hole is something that was broken: what, and the first deed that did it.
type hole struct {
	times                    int
	what, shape, deed, again string
}

// share is the seed and the time that there is: a minute, unless the environment says otherwise.
func share(t *testing.T) (seed uint64, budget time.Duration) {
	t.Helper()
	seed, budget = harness.DaySeed(t), time.Minute
	if word := os.Getenv("BERTH_BUDGET"); word != "" {
		var err error
		budget, err = time.ParseDuration(word)
		check(t, err)
	}
	return seed, budget
}

// where is the function of ours that a panic's stack begins in.
var where = regexp.MustCompile(`(berth[-a-z/]*|main)\.\(?\*?\w+\)?\.?\w*`)

var changing = regexp.MustCompile(`[0-9]+`)

// keys are what was broken, without what differs from trial to trial.
func (t *trial) keys() (keys []string) {
	for _, what := range t.broken {
		if i := strings.Index(what, "panic:"); i >= 0 {
			what = "panic: " + where.FindString(what[i:])
		}
		keys = append(keys, t.command.String()+": "+changing.ReplaceAllString(strings.ReplaceAll(what, t.s.b.Dir, ""), "N"))
	}
	return keys
}

// news counts what was broken, and says whether any of it is new.
func (r *run) news(t *trial) (news bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, key := range t.keys() {
		if r.holes[key] == nil {
			r.holes[key] = &hole{}
			news = true
		}
		r.holes[key].times++
	}
	return news
}

func (r *run) found(t *trial, deed, again string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, key := range t.keys() {
		if r.holes[key] == nil {
			r.holes[key] = &hole{times: 1}
		}
		if h := r.holes[key]; h.what == "" {
			h.what, h.shape, h.deed, h.again = t.broken[i], t.shape.name, deed, again
		}
	}
}

// againWords name a trial for BERTH_AGAIN.
func againWords(t *trial, d *deed) string {
	words := t.shape.name + "|" + t.command.String()
	if d != nil {
		words += "|" + strings.ReplaceAll(d.act.String(), t.s.canary.outside, "OUTSIDE") + "|" + d.step.at
	}
	return words
}

// again makes one trial anew.
func (r *run) again(t *testing.T, words string) {
	fields := strings.Split(words, "|")
	s := newScene(t, firstUser)
	defer func() { s.end(t); s.b.ReapOrphans() }()
	i := slices.IndexFunc(shapes, func(sh shape) bool { return sh.name == fields[0] })
	j := slices.IndexFunc(commands, func(c command) bool { return len(fields) > 1 && c.String() == fields[1] })
	if i < 0 || j < 0 {
		t.Fatalf("BERTH_AGAIN=%s: want SHAPE|COMMAND or SHAPE|COMMAND|ACT|STEP", words)
	}
	var found *trial
	if len(fields) < 4 {
		found = (&trial{s: s, shape: shapes[i], command: commands[j]}).with(nil)
	} else {
		all := acts(s.canary.outside)
		k := slices.IndexFunc(all, func(a act) bool { return a.String() == strings.ReplaceAll(fields[2], "OUTSIDE", s.canary.outside) })
		if k < 0 {
			t.Fatalf("BERTH_AGAIN: there is no act %q", fields[2])
		}
		found = (&trial{s: s, shape: shapes[i], command: commands[j]}).with([]deed{{act: all[k], step: step{at: fields[3]}}})
	}
	for _, d := range found.deeds {
		t.Logf("%s: %+v", d, d.got)
	}
	for _, what := range found.broken {
		t.Error(what)
	}
	t.Logf("%d steps, %d acts done; the command refused: %v", len(found.steps), len(found.deeds), found.refused)
}

// report says what was tried, and each hole with the words that show it again.
func (r *run) report(t *testing.T) {
	t.Helper()
	for _, key := range slices.Sorted(maps.Keys(r.holes)) {
		h := r.holes[key]
		if h.what == "" {
			h.what = key
		}
		t.Errorf("%s\n\t%s: %d times, first (%s) by %s\n\tBERTH_AGAIN='%s'", h.what, key, h.times, h.shape, h.deed, h.again)
	}
	done := r.whole - len(r.todo)
	var by []string
	pairs := []any{"combinations", r.counts.combinations, "trials", r.counts.trials, "refused in them", r.counts.refused}
	for _, who := range slices.Sorted(maps.Keys(r.counts.by)) {
		by = append(by, fmt.Sprintf("%s %d", who, r.counts.by[who]))
	}
	t.Logf("BERTH_SEED=%d: %d of %d series, %d containers (%d refused, %d without the act), %d combinations of step, principal and act: %s",
		r.seed, done, r.whole, r.counts.trials, r.counts.refused, r.missed, r.counts.combinations, strings.Join(by, ", "))
	harness.Report(t, pairs...)
	if r.counts.combinations == 0 {
		t.Error("nothing was tried")
	}
}
