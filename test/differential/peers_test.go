package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// An engine is Berth or one of its peers.
type engine struct{ Name, Path, Version string }

// findPeers looks for today's releases: those that the environment names, as in a guest, or those
// in the caches. Why one is not there is said in missing.
func findPeers() (peers []engine, missing []string) {
	for _, peer := range []struct{ name, env, cached, made string }{
		{"runc", "BERTH_RUNC", "runc/build", "test/differential/runc/build"},
		{"crun", "BERTH_CRUN", "../../build/scripts/fetch-crun", "build/scripts/fetch-crun"},
	} {
		path := os.Getenv(peer.env)
		if path == "" {
			out, err := exec.Command(peer.cached, "--cached").Output()
			if err != nil {
				missing = append(missing, fmt.Sprintf("%s is not there (%s gets it)", peer.name, peer.made))
				continue
			}
			path = strings.TrimSpace(string(out))
		}
		path, _ = filepath.Abs(path)
		out, err := exec.Command(path, "--version").Output()
		if err != nil {
			missing = append(missing, fmt.Sprintf("%s does not run here: %v", peer.name, err))
			continue
		}
		first, _, _ := strings.Cut(string(out), "\n")
		words := strings.Fields(first)
		peers = append(peers, engine{peer.name, path, words[len(words)-1]})
	}
	return peers, missing
}
