package terminal

import (
	"io"
	"os"
	"sync"
	"time"
)

// A Progress is one line on standard error that tells how far something has come, for
// people who wait. Where that is no terminal it is nil, which is a Progress too: nothing
// is written then.
type Progress struct {
	out   io.Writer
	width int
	began time.Time
	text  func() string

	ended chan struct{}
	gone  sync.WaitGroup
	lock  sync.Mutex // of the line
	drawn bool
}

// What ends quickly needs no line.
const (
	progressAfter = 400 * time.Millisecond
	progressEvery = 200 * time.Millisecond
)

// Show begins a Progress. The text is asked for again each time the line is drawn, from
// a goroutine of its own.
func Show(text func() string) *Progress {
	width := Width(2)
	if width == 0 {
		return nil
	}
	return show(os.Stderr, width, progressAfter, text)
}

func show(out io.Writer, width int, after time.Duration, text func() string) *Progress {
	p := &Progress{out: out, width: width, began: time.Now(), text: text, ended: make(chan struct{})}
	p.gone.Add(1)
	go func() {
		defer p.gone.Done()
		p.draw(after)
	}()
	return p
}

func (p *Progress) draw(after time.Duration) {
	timer := time.NewTimer(after)
	defer timer.Stop()
	for {
		select {
		case <-p.ended:
			p.Clear()
			return
		case <-timer.C:
		}
		line := []byte(p.text() + ", " + time.Since(p.began).Round(time.Second).String())
		if len(line) > p.width-1 {
			line = first(line, min(p.width-1, len([]rune(string(line)))))
		}
		p.lock.Lock()
		_, _ = p.out.Write(append(append([]byte("\r"), line...), "\x1b[K"...))
		p.drawn = true
		p.lock.Unlock()
		timer.Reset(progressEvery)
	}
}

// Clear takes the line away until it is drawn again, for something else to be written.
func (p *Progress) Clear() {
	if p == nil {
		return
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.drawn {
		_, _ = io.WriteString(p.out, "\r\x1b[K")
		p.drawn = false
	}
}

// End takes the line away for good.
func (p *Progress) End() {
	if p == nil {
		return
	}
	close(p.ended)
	p.gone.Wait()
}
