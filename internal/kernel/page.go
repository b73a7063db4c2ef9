package kernel

import "strings"

// plain is the name without the page's marks.
func (f *Feature) plain() string { return strings.ReplaceAll(f.Name, "`", "") }

// Page is docs/kernel-features.md.
func Page() []byte {
	var b strings.Builder
	b.WriteString(`# Kernel features

The kernel features this project uses, the Linux version that introduced each one, and the fallback. The minimum is Linux ` + Floor + `. A feature
is detected by trying it, never by the kernel's version; ` + "`berth doctor`" + ` shows what this kernel has. If a feature is missing and has no
fallback, the error names the feature and the minimum Linux version.
`)
	for _, s := range Sections {
		b.WriteString("\n## " + s.Title + "\n\n| feature | since | use | fallback | cost of the fallback |\n| --- | --- | --- | --- | --- |\n")
		for _, f := range s.Features {
			least := f.Least
			if f.More != "" {
				least += "; " + f.More
			}
			b.WriteString("| " + f.Name + " | " + least + " | " + f.Use + " | " + or(f.Without, "below the floor") + " | " + or(f.Cost, "–") + " |\n")
		}
	}
	return []byte(b.String())
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}
