package program_test

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	. "github.com/berth-runtime/berth/engine/program"
)

// talkative is a Program that asks for a device, from a branch for a limit, forks, asks for a
// terminal, and is ready.
func talkative(t testing.TB) *Program {
	t.Helper()
	b := NewBuilder()
	b.Call(unix.SYS_SETSID)
	b.May(Expectation{Request: Request{Kind: AskDevice, Value: 3}, FD: true})
	beside := b.Beside()
	b.May(Expectation{Request: Request{Kind: AskForked}})
	b.May(Expectation{Request: Request{Kind: AskConsole}, FD: true})
	b.May(Expectation{Request: Request{Kind: AskReady}})
	beside(func() { b.May(Expectation{Request: Request{Kind: AskLimits, Value: 7}}) })
	b.Call(unix.SYS_EXIT_GROUP, Int(0))
	p, err := b.Build(3)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func message(kind Ask, value uint64) []byte {
	const magic = 'K'<<24 | 'S'<<16 | 'A'<<8 | 'B'
	b := binary.LittleEndian.AppendUint32(nil, magic)
	b = binary.LittleEndian.AppendUint32(b, uint32(kind))
	return binary.LittleEndian.AppendUint64(b, value)
}

func TestTalk(t *testing.T) {
	type said struct {
		message     []byte
		descriptors int
	}
	all := []said{{message(AskDevice, 3), 1}, {message(AskLimits, 7), 0}, {message(AskForked, 4711), 0}, {message(AskConsole, 0), 1}, {message(AskReady, 0), 0}}
	talk := talkative(t).Talk()
	for i, s := range all {
		if _, f, err := talk.Hear(s.message, s.descriptors); f != nil || err != nil {
			t.Errorf("message %d: %v, %v", i, f, err)
		}
	}
	for name, c := range map[string]struct {
		before []said
		said
		want string
	}{
		"twice":                      {all[:1], all[0], "does not do at this point"},
		"out of order":               {all[2:3], all[0], "does not do at this point"},
		"a branch that lies behind":  {all[2:3], all[1], "does not do at this point"},
		"another device":             {nil, said{message(AskDevice, 4), 1}, "does not do at this point"},
		"a limit out of range":       {nil, said{message(AskLimits, 1<<63), 0}, "does not do at this point"},
		"of a kind that is not its":  {nil, said{message(AskHooks, 0), 0}, "does not do at this point"},
		"of no kind":                 {nil, said{message(0, 0), 0}, "does not do at this point"},
		"without its descriptor":     {nil, said{message(AskDevice, 3), 0}, "0 descriptors, where 1"},
		"with two descriptors":       {nil, said{message(AskDevice, 3), 2}, "2 descriptors, where 1"},
		"with a descriptor too much": {nil, said{message(AskReady, 0), 1}, "1 descriptors, where 0"},
		"process 0":                  {nil, said{message(AskForked, 0), 0}, "not a pid"},
		"all processes":              {nil, said{message(AskForked, 1<<64-1), 0}, "not a pid"},
		"short":                      {nil, said{message(AskReady, 0)[:15], 0}, "mean nothing"},
		"long":                       {nil, said{append(message(AskReady, 0), 0), 0}, "mean nothing"},
		"failure of no call":         {nil, said{record(magic, 5, 2, unix.SYS_SETSID), 0}, "does not make"},
		"failure of another call":    {nil, said{record(magic, 0, 2, unix.SYS_EXECVE), 0}, "does not make"},
		"failure with a descriptor":  {nil, said{record(magic, 0, 1, unix.SYS_SETSID), 1}, "does not make"},
		"after a failure":            {[]said{{record(magic, 0, 1, unix.SYS_SETSID), 0}}, all[4], "does not do at this point"},
	} {
		talk := talkative(t).Talk()
		for _, s := range c.before {
			if _, _, err := talk.Hear(s.message, s.descriptors); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if r, f, err := talk.Hear(c.message, c.descriptors); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %+v, %v, %v", name, r, f, err)
		}
	}
}

// FuzzTalk says anything to the decoder: what it lets through is what the Program says, in its
// order, once each.
func FuzzTalk(f *testing.F) {
	f.Add(slices.Concat(message(AskDevice, 3), []byte{1}, message(AskLimits, 7), []byte{0}, message(AskForked, 2), []byte{0}))
	f.Add(slices.Concat(message(AskReady, 0), []byte{0}, message(AskReady, 0), []byte{0}))
	f.Add(slices.Concat(record(magic, 0, 1, unix.SYS_SETSID), []byte{0}))
	order := map[Ask]int{AskDevice: 1, AskLimits: 1, AskForked: 2, AskConsole: 3, AskReady: 4}
	f.Fuzz(func(t *testing.T, data []byte) {
		p := talkative(t)
		talk, place, seen := p.Talk(), 0, map[Ask]bool{}
		for len(data) > 0 {
			n := min(17, len(data))
			text, descriptors := data[:n-1], int(data[n-1])%3
			data = data[n:]
			r, failure, err := talk.Hear(text, descriptors)
			if err != nil {
				continue // a caller ends the child here; the decoder is to stand it all the same
			}
			if failure != nil {
				if failure.Index >= len(p.Ops) || p.Ops[failure.Index].Nr != failure.Nr {
					t.Fatalf("the failure %+v", failure)
				}
				return
			}
			at, known := order[r.Kind]
			if !known || seen[r.Kind] || at < place {
				t.Fatalf("%+v after place %d", r, place)
			}
			seen[r.Kind], place = true, at
			wanted := map[Ask]uint64{AskDevice: 3, AskLimits: 7}[r.Kind]
			if r.Kind == AskForked {
				if r.Value == 0 || r.Value > 1<<22 {
					t.Fatalf("process %d", r.Value)
				}
			} else if r.Value != wanted {
				t.Fatalf("%+v", r)
			}
			if fd := r.Kind == AskDevice || r.Kind == AskConsole; fd != (descriptors == 1) || descriptors == 2 {
				t.Fatalf("%+v with %d descriptors", r, descriptors)
			}
		}
	})
}
