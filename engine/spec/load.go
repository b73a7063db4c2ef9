package spec

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// ConfigName is the name of the config in a bundle, by the OCI runtime spec.
const ConfigName = "config.json"

// MaxSize is the largest config that is read. Real ones have some ten
// kilobytes; the kernel takes no more than 6 MiB of arguments and environment.
const MaxSize = 16 << 20

// LoadChecked reads, decodes and checks the config.json of a bundle, a directory.
// The error has all complaints at once, of Parse and of Check; the warnings are
// those of Check.
func LoadChecked(bundle string) (s *specs.Spec, warnings []Complaint, err error) {
	data, err := Read(bundle)
	if err != nil {
		return nil, nil, err
	}
	s, warnings, err = ParseChecked(data)
	if err != nil {
		return nil, warnings, &ConfigError{Err: err}
	}
	return s, warnings, nil
}

// Load reads and decodes the config.json of a bundle, but does not check it.
func Load(bundle string) (*specs.Spec, error) {
	data, err := Read(bundle)
	if err != nil {
		return nil, err
	}
	s, err := Parse(data)
	if err != nil {
		return nil, &ConfigError{Err: err}
	}
	return s, nil
}

// A ConfigError says why a bundle's config.json can't be used. It wraps the
// cause: an error of the file system, a [*json.SyntaxError] or [Errors].
type ConfigError struct {
	Err  error
	Hint string
}

func (e *ConfigError) Error() string {
	text := ConfigName + ": " + e.Err.Error()
	if e.Hint != "" {
		text += " (" + e.Hint + ")"
	}
	return text
}

func (e *ConfigError) Unwrap() error { return e.Err }

// Read returns the bytes of a bundle's config.json. The error is a
// [*ConfigError].
func Read(bundle string) ([]byte, error) {
	// Not by package os: its files begin with Go's poller, five system calls. And
	// without O_NONBLOCK, opening a pipe waits for a writer.
	fd, err := syscall.Open(filepath.Join(bundle, ConfigName), syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, &ConfigError{err, openHint(bundle, err)}
	}
	defer syscall.Close(fd)
	var info syscall.Stat_t
	if err := syscall.Fstat(fd, &info); err != nil {
		return nil, &ConfigError{Err: err}
	}
	if info.Mode&syscall.S_IFMT != syscall.S_IFREG { // a device may never end
		return nil, &ConfigError{Err: errors.New("not a regular file")}
	}
	if info.Size > MaxSize {
		return nil, &ConfigError{Err: errTooLarge}
	}
	// One byte beyond the size lets the last read see the end, and one beyond
	// the limit shows that the file has grown past it meanwhile.
	data := make([]byte, 0, info.Size+1)
	for len(data) <= MaxSize {
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		n, err := syscall.Read(fd, data[len(data):cap(data)])
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil:
			return nil, &ConfigError{Err: err}
		case n == 0:
			return data, nil
		}
		data = data[:len(data)+n]
	}
	return nil, &ConfigError{Err: errTooLarge}
}

var errTooLarge = errors.New("larger than 16 MiB, which no config needs")

func openHint(bundle string, err error) string {
	switch {
	case !errors.Is(err, fs.ErrNotExist):
		return "in the bundle " + strconv.Quote(bundle)
	case !isFolder(bundle):
		return "there is no bundle directory " + strconv.Quote(bundle)
	}
	return "the bundle " + strconv.Quote(bundle) + " has none: name another one, or write one by berth spec"
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
