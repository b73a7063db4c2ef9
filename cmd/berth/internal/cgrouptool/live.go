package cgrouptool

import (
	"bytes"
	"os"
	"os/signal"
	"time"

	"github.com/berth-runtime/berth/cmd/internal/terminal"
	"golang.org/x/sys/unix"
)

// Live is a ranking that is redrawn on a terminal until the user quits.
type Live struct {
	Meter   *Meter
	Ranking Ranking
	Style   Style
	Every   time.Duration
	Times   int // 0 is without end
}

// Enter and leave the terminal's second screen, without a cursor, so that
// what was on the first is there again afterwards.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l"
	leaveScreen = "\x1b[?25h\x1b[?1049l"
)

// Run draws on out and takes keys from in, both of which are terminals.
func (l *Live) Run(in, out *os.File) error {
	raw, err := terminal.MakeRaw(int(in.Fd()))
	if err != nil {
		return err
	}
	defer raw.Restore()
	if _, err := out.WriteString(enterScreen); err != nil {
		return err
	}
	defer func() { _, _ = out.WriteString(leaveScreen) }()

	l.Ranking.Keys = true
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, unix.SIGWINCH, unix.SIGTERM, unix.SIGINT, unix.SIGHUP)
	defer signal.Stop(signals)
	keys := make(chan byte, 64)
	go readKeys(in, keys)
	ticks := time.NewTicker(l.Every)
	defer ticks.Stop()

	// The second look comes soon: the first has no rates yet.
	soon := time.After(min(l.Every, 200*time.Millisecond))
	var rows []Row
	measure := true
	for round := 0; ; {
		if measure {
			if rows, err = l.Meter.Sample(); err != nil {
				return err
			}
			if round++; l.Times > 0 && round > l.Times {
				return nil
			}
		}
		Sort(rows, l.Ranking.By)
		if err := l.draw(out, rows); err != nil {
			return err
		}
		measure = false
		select {
		case <-soon:
			measure = true
		case <-ticks.C:
			measure = true
		case s := <-signals:
			if s != unix.SIGWINCH {
				return nil
			}
			l.Style.Resize(out)
		case key, open := <-keys:
			if !open {
				return nil // the terminal hung up
			}
			before := l.Every
			if l.press(key) {
				return nil
			}
			if l.Every != before {
				ticks.Reset(l.Every)
			}
			measure = key == ' '
		}
	}
}

// press does what a key is for, and reports whether it ends the view.
func (l *Live) press(key byte) (quit bool) {
	switch key {
	case 'q', 'Q', 3, 4: // ctrl-C and ctrl-D, which a raw terminal does not turn into anything
		return true
	case '+':
		l.Every = min(l.Every+time.Second, time.Minute)
	case '-':
		l.Every = max(l.Every-time.Second, time.Second)
	default:
		if order, ok := ParseOrder(string(key)); ok {
			l.Ranking.By = order
		}
	}
	return false
}

// draw writes a whole screen at once, so that it does not flicker.
func (l *Live) draw(out *os.File, rows []Row) error {
	l.Meter.AddPressure(rows[:min(len(rows), max(l.Style.Height, 0))])
	var b bytes.Buffer
	b.WriteString("\x1b[H")
	for i, line := range bytes.SplitAfter([]byte(l.Style.Rank(rows, l.Ranking)), []byte{'\n'}) {
		if i >= l.Style.Height {
			break
		}
		b.WriteString("\x1b[2K")
		b.Write(line)
	}
	b.WriteString("\x1b[J")
	_, err := out.Write(b.Bytes())
	return err
}

// readKeys hands over what is typed. It ends with the terminal, or is left
// behind when the program ends: a read of a terminal cannot be called off.
func readKeys(in *os.File, keys chan<- byte) {
	defer close(keys)
	var buf [16]byte
	for {
		n, err := in.Read(buf[:])
		if err != nil || n == 0 {
			return
		}
		for _, b := range buf[:n] {
			keys <- b
		}
	}
}
