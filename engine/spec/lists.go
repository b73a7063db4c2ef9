package spec

import "strings"

// cpuList checks a list of processors or memory nodes, as the kernel's
// bitmap_parselist reads it: numbers and ranges between commas. An empty list
// is not a list.
func (c *checker) cpuList(p place, list string) {
	if !validList(list) {
		c.bad(p, "expected a list like 0-3,7, found "+quote(list))
	}
}

// validList also takes the kernel's pattern "first-last:used/group", and white
// space around the entries.
func validList(list string) bool {
	if strings.TrimSpace(list) == "" {
		return true
	}
	for part := range strings.SplitSeq(list, ",") {
		span, pattern, strided := strings.Cut(strings.TrimSpace(part), ":")
		first, last, ranged := strings.Cut(span, "-")
		low, ok := number(first)
		if !ok {
			return false
		}
		if ranged {
			if high, ok := number(last); !ok || high < low {
				return false
			}
		}
		if strided {
			usedText, groupText, _ := strings.Cut(pattern, "/")
			used, ok1 := number(usedText)
			group, ok2 := number(groupText)
			if !ranged || !ok1 || !ok2 || group == 0 || used > group {
				return false
			}
		}
	}
	return true
}

// number reads a processor's or node's number. Linux has at most 8192 processors;
// the bound, which is cgroup/ledger's too, only keeps away what can't be meant.
func number(s string) (n int, ok bool) {
	if s == "" {
		return 0, false
	}
	for _, digit := range []byte(s) {
		if digit < '0' || digit > '9' {
			return 0, false
		}
		n = n*10 + int(digit-'0')
		if n >= 1<<16 {
			return 0, false
		}
	}
	return n, true
}
