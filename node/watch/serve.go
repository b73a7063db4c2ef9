package watch

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// serve answers /metrics and /healthz on an address.
func (d *Daemon) serve(address string) (stop func(), err error) {
	if address == "off" {
		return func() {}, nil
	}
	l, err := listenOn(address)
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: d.handler(), ReadTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second, MaxHeaderBytes: 8 << 10}
	// It ends with the listener.
	go func() { _ = server.Serve(l) }()
	return func() { server.Close() }, nil
}

func (d *Daemon) handler() http.Handler {
	mux := http.NewServeMux()
	var one sync.Mutex // many that ask at once would each walk all cgroups
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		one.Lock()
		text := d.metrics()
		one.Unlock()
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = io.WriteString(w, text)
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		d.mu.Lock()
		complaints := d.complaints()
		d.mu.Unlock()
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		if len(complaints) > 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, strings.Join(complaints, "\n")+"\n")
			return
		}
		_, _ = io.WriteString(w, "ok\n")
	})
	return mux
}

// cutUnix takes the path out of unix:PATH.
func cutUnix(address string) (string, bool) { return strings.CutPrefix(address, "unix:") }
