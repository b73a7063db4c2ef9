package nat

import "testing"

func TestParsePort(t *testing.T) {
	for text, want := range map[string]Port{
		"8080:80": {Host: 8080, Box: 80}, "127.0.0.1:8080:80": {Address: "127.0.0.1", Host: 8080, Box: 80},
		"53:53/udp": {Host: 53, Box: 53, UDP: true}, "1:65535/tcp": {Host: 1, Box: 65535},
	} {
		if got, err := ParsePort(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, wrong := range []string{"", "80", ":80", "80:", "0:80", "80:0", "80:65536", "80:80/sctp", "x:80:80", "::1:80:80", "1-5:1-5", "80:80:80:80", "127.0.0.1:80", "8080:-80"} {
		if got, err := ParsePort(wrong); err == nil {
			t.Errorf("%q: %+v", wrong, got)
		}
	}
}
