package ledger

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// maxListed bounds a list. The kernel's NR_CPUS is at most 8192 and its
// MAX_NUMNODES 1024; the bound keeps "0-4000000000" from filling the memory.
const maxListed = 1 << 16

// List is a set of CPUs or memory nodes.
type List struct{ words []uint64 }

// ParseList reads the list format of cpuset(7): "0-3,7", and the groups of
// "0-31:2/8" (of every 8, the first 2).
func ParseList(s string) (List, error) {
	var l List
	s = strings.TrimSpace(s)
	if s == "" {
		return l, nil
	}
	for part := range strings.SplitSeq(s, ",") {
		// The kernel passes over empty parts and spaces ("1, 2,").
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		if err := l.addPart(part); err != nil {
			return List{}, fmt.Errorf("list %q: %q: %w", s, part, err)
		}
	}
	return l, nil
}

func (l *List) addPart(part string) error {
	span, stride, strided := strings.Cut(part, ":")
	low, high, ranged := strings.Cut(span, "-")
	first, err := listNumber(low)
	if err != nil {
		return err
	}
	last := first
	if ranged {
		if last, err = listNumber(high); err != nil {
			return err
		}
	}
	if last < first {
		return errors.New("the range runs backwards")
	}
	used, group := 1, 1
	if strided {
		if !ranged {
			return errors.New("a group needs a range")
		}
		u, g, ok := strings.Cut(stride, "/")
		if !ok {
			return errors.New("a group is written used/size")
		}
		if used, err = listNumber(u); err != nil {
			return err
		}
		if group, err = listNumber(g); err != nil {
			return err
		}
		if used == 0 || group == 0 || used > group {
			return errors.New("a group uses from one to all of its size")
		}
	}
	for n := first; n <= last; n++ {
		if (n-first)%group < used {
			l.Add(n)
		}
	}
	return nil
}

func listNumber(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		return 0, errors.New("not a number")
	}
	if n >= maxListed {
		return 0, errors.New("number too large")
	}
	return int(n), nil
}

// Add puts n into the set.
func (l *List) Add(n int) {
	for n/64 >= len(l.words) {
		l.words = append(l.words, 0)
	}
	l.words[n/64] |= 1 << (n % 64)
}

// Has says whether n is in the set.
func (l List) Has(n int) bool {
	return n >= 0 && n/64 < len(l.words) && l.words[n/64]&(1<<(n%64)) != 0
}

// Len is the number of members.
func (l List) Len() int {
	n := 0
	for _, w := range l.words {
		n += bits.OnesCount64(w)
	}
	return n
}

// String gives the list the way the kernel prints it: ascending, with ranges.
func (l List) String() string {
	var b []byte
	for n := 0; n < len(l.words)*64; n++ {
		if !l.Has(n) {
			continue
		}
		end := n
		for l.Has(end + 1) {
			end++
		}
		if len(b) > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(n), 10)
		if end > n {
			b = append(b, '-')
			b = strconv.AppendInt(b, int64(end), 10)
		}
		n = end
	}
	return string(b)
}

// Words gives the set as the kernel's calls take it: bits of 64-bit words.
func (l List) Words() []uint64 { return slices.Clone(l.words) }

// Bitmap gives the set in the byte order of systemd's AllowedCPUs: CPU 0 is
// the lowest bit of the first byte (cpu_set_to_dbus), whatever the machine's
// own order, with no zero bytes at the end.
func (l List) Bitmap() []byte {
	b := make([]byte, len(l.words)*8)
	last := 0
	for i := range b {
		b[i] = byte(l.words[i/8] >> (i % 8 * 8))
		if b[i] != 0 {
			last = i + 1
		}
	}
	return b[:last]
}

// ListFromBitmap is the other direction.
func ListFromBitmap(b []byte) List {
	var l List
	for i, v := range b {
		for bit := range 8 {
			if v&(1<<bit) != 0 {
				l.Add(i*8 + bit)
			}
		}
	}
	return l
}
