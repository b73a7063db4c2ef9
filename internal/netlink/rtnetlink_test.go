package netlink

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// inNewNetns runs a test on a thread in a network namespace of its own.
func inNewNetns(t *testing.T, test func(netns int)) {
	t.Helper()
	refused := make(chan error)
	go func() {
		defer close(refused)
		runtime.LockOSThread() // never unlocked: the thread ends in the namespace
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			refused <- err
			return
		}
		fd, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Error(err)
			return
		}
		defer unix.Close(fd)
		test(fd)
	}()
	if err := <-refused; err != nil {
		t.Skipf("no network namespace can be made: %v", err)
	}
}

func TestLoopback(t *testing.T) {
	inNewNetns(t, func(int) {
		c, err := Open()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		lo, err := c.LinkByName("lo")
		if err != nil || lo.Name != "lo" || lo.Up {
			t.Errorf("lo: %+v, %v", lo, err)
		}
		if err := c.SetUp(lo.Index, true); err != nil {
			t.Error(err)
		}
		if lo, err = c.LinkByName("lo"); err != nil || !lo.Up {
			t.Errorf("lo after it was brought up: %+v, %v", lo, err)
		}
		if _, err := c.LinkByName("absent0"); !errors.Is(err, unix.ENODEV) {
			t.Errorf("absent0: %v", err)
		}
		addresses, err := c.Addresses(lo.Index)
		if err != nil || len(addresses) == 0 {
			t.Errorf("addresses of lo: %v, %v", addresses, err)
		}
		for _, a := range addresses {
			if a.Permanent() {
				t.Error("an address of the host's scope is taken for one of the world")
			}
		}
	})
}

func TestMoveKeepsAddresses(t *testing.T) {
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("ip (iproute2) is not installed")
	}
	skip := ""
	inNewNetns(t, func(int) {
		for _, args := range [][]string{
			{"link", "add", "dev0", "type", "veth"}, {"addr", "add", "192.0.2.7/24", "dev", "dev0"}, {"addr", "add", "2001:db8::7/64", "dev", "dev0"},
		} {
			if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
				skip = fmt.Sprintf("ip %v: %v: %s", args, err, out)
				return
			}
		}
		here, err := Open()
		if err != nil {
			t.Error(err)
			return
		}
		defer here.Close()
		link, err := here.LinkByName("dev0")
		if err != nil {
			t.Error(err)
			return
		}
		addresses, err := here.Addresses(link.Index)
		if err != nil {
			t.Error(err)
		}
		inNewNetns(t, func(to int) {
			if err := here.Move(link.Index, to, "moved0"); err != nil {
				t.Errorf("move: %v", err)
				return
			}
			there, err := OpenIn(to)
			if err != nil {
				t.Error(err)
				return
			}
			defer there.Close()
			moved, err := there.LinkByName("moved0")
			if err != nil {
				t.Errorf("moved0: %v", err)
				return
			}
			kept := 0
			for _, a := range addresses {
				if a.Permanent() {
					kept++
					if err := there.AddAddress(moved.Index, a); err != nil {
						t.Errorf("address: %v", err)
					}
				}
			}
			if kept != 2 {
				t.Errorf("%d permanent addresses, want 2", kept)
			}
			if now, err := there.Addresses(moved.Index); err != nil || len(now) < 2 {
				t.Errorf("%d addresses there, %v", len(now), err)
			}
		})
		if _, err := here.LinkByName("dev0"); !errors.Is(err, unix.ENODEV) {
			t.Errorf("dev0 is still here: %v", err)
		}
	})
	if skip != "" {
		t.Skip(skip)
	}
}

func FuzzAnswers(f *testing.F) {
	// answer is a message as the kernel sends it, with its length in front.
	answer := func(kind, flags uint16, body []byte) []byte {
		b := append(request(kind, flags), body...)
		native.PutUint32(b, uint32(len(b)))
		return append(b, make([]byte, -len(b)&3)...)
	}
	link := attribute(linkInfo(7, unix.IFF_UP, 0), unix.IFLA_IFNAME, []byte("eth0\x00"))
	f.Add(answer(unix.RTM_NEWLINK, 0, link))
	f.Add(append(answer(unix.RTM_NEWLINK, unix.NLM_F_MULTI, attribute(link, unix.IFLA_MTU, []byte{0, 5, 0, 0})), answer(unix.NLMSG_DONE, unix.NLM_F_MULTI, make([]byte, 4))...))
	f.Add(answer(unix.NLMSG_ERROR, 0, native.AppendUint32(nil, ^uint32(unix.ENODEV)+1)))
	f.Add(answer(unix.NLMSG_ERROR, 0, make([]byte, 4)))
	f.Add(answer(unix.RTM_NEWLINK, 0, append(link[:len(link):len(link)], 200, 0, 3, 0)))
	f.Fuzz(func(t *testing.T, data []byte) {
		c := &Conn{}
		_, _ = c.answers(data, func(kind uint16, body []byte) {
			parseLink(body)
			attributes(body, func(uint16, []byte) {})
		})
	})
}
