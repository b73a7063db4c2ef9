package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berth-runtime/berth/cmd/internal/terminal"
	"github.com/berth-runtime/berth/engine/rootfs"
	"github.com/berth-runtime/berth/internal/proc/procs"
)

// ownTable shows processes as ps -f does (ps(1)), which need not be there, and takes twice as long
// as all else.
func ownTable(pids []int) error {
	var list []*procs.Process
	slices.Sort(pids)
	for _, pid := range pids {
		p, err := procs.Read(pid)
		if errors.Is(err, procs.ErrGone) {
			continue
		}
		if err != nil {
			return err
		}
		list = append(list, p)
	}
	passwd, _ := os.ReadFile("/etc/passwd") // without it there are numbers
	writePS(terminal.Lines(os.Stdout), list, string(passwd), time.Now())
	return nil
}

// writePS writes the table. The columns are those of ps -ef, with the numbers as wide as they have
// to be.
func writePS(out io.Writer, list []*procs.Process, passwd string, now time.Time) {
	wide := 5
	for _, p := range list {
		wide = max(wide, len(strconv.Itoa(p.PID)), len(strconv.Itoa(p.Parent)))
	}
	fmt.Fprintf(out, "%-8s %*s %*s %2s %5s %-8s %8s %s\n", "UID", wide, "PID", wide, "PPID", "C", "STIME", "TTY", "TIME", "CMD")
	names := make(map[uint32]string) // most processes have the same user, whose entry is looked for from the top
	for _, p := range list {
		name, known := names[p.UID]
		if !known {
			name = psUser(p.UID, passwd)
			names[p.UID] = name
		}
		fmt.Fprintf(out, "%-8s %*d %*d %2d %5s %-8s %8s %s\n", name, wide, p.PID, wide, p.Parent, psShare(p, now), psStarted(p.Started, now),
			psTerminal(p.Terminal), psTime(p.CPU), psCommand(p))
	}
}

// psUser is a user's name in the host's eyes, in eight characters.
func psUser(uid uint32, passwd string) string {
	u, err := rootfs.UserByID(strings.NewReader(passwd), uid)
	switch {
	case err != nil:
		return strconv.FormatUint(uint64(uid), 10)
	case len(u.Name) > 8:
		return u.Name[:7] + "+"
	}
	return u.Name
}

// psShare is how much of one processor it has used in all its life, in percent.
func psShare(p *procs.Process, now time.Time) int64 {
	lived := now.Sub(p.Started).Truncate(time.Second)
	if lived <= 0 {
		return 0
	}
	return min(int64(p.CPU*100/lived), 99)
}

// psStarted is the time of a process of today, the day of one of this year, else the year.
func psStarted(began, now time.Time) string {
	began = began.In(now.Location())
	switch {
	case began.Year() != now.Year():
		return began.Format("2006")
	case began.YearDay() != now.YearDay():
		return began.Format("Jan02")
	}
	return began.Format("15:04")
}

// psTerminal names a terminal by its device number, as stat of proc(5) packs it.
func psTerminal(dev uint64) string {
	major, minor := dev>>8&0xfff, dev&0xff|dev>>12&0xfff00
	switch {
	case dev == 0:
		return "?"
	case major >= 136 && major <= 143: // Unix98 terminals, by 256 (Documentation/admin-guide/devices.txt)
		return "pts/" + strconv.FormatUint((major-136)*256+minor, 10)
	case major == 4 && minor < 64:
		return "tty" + strconv.FormatUint(minor, 10)
	case major == 4:
		return "ttyS" + strconv.FormatUint(minor-64, 10)
	case major == 5 && minor == 1:
		return "console"
	}
	return strconv.FormatUint(major, 10) + ":" + strconv.FormatUint(minor, 10)
}

// psTime is [days-]hours:minutes:seconds.
func psTime(d time.Duration) string {
	s := int64(d / time.Second)
	days := ""
	if s >= 24*3600 {
		days = strconv.FormatInt(s/(24*3600), 10) + "-"
		s %= 24 * 3600
	}
	return fmt.Sprintf("%s%02d:%02d:%02d", days, s/3600, s/60%60, s%60)
}

// psCommand is what a process executes. The words are its own: what would move a terminal's cursor
// is not passed on.
func psCommand(p *procs.Process) string {
	words := strings.Join(p.Args, " ")
	if len(p.Args) == 0 {
		words = "[" + p.Name + "]"
	}
	if p.State == 'Z' {
		words += " <defunct>"
	}
	return strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) || r == '\uFFFD' { // as ps(1) does it, which lets what turns the direction through
			return '?'
		}
		return r
	}, words)
}
