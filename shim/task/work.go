package task

import (
	"sync"
	"time"
)

// work is what goes on beside the calls.
type work struct {
	mu    sync.Mutex
	count int
	idle  chan struct{} // closed when count is 0 again
}

// do has f done, and counts it until then.
func (w *work) do(f func()) {
	w.mu.Lock()
	if w.count++; w.count == 1 {
		w.idle = make(chan struct{})
	}
	w.mu.Unlock()
	go func() {
		defer func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.count--; w.count == 0 {
				close(w.idle)
			}
		}()
		f()
	}()
}

// wait waits until nothing is being done, or the time is over.
func (w *work) wait(limit time.Duration) bool {
	w.mu.Lock()
	count, idle := w.count, w.idle
	w.mu.Unlock()
	if count == 0 {
		return true
	}
	select {
	case <-idle:
		return true
	case <-time.After(limit):
		return false
	}
}
