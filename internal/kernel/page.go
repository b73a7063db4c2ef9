package kernel

import "strings"

// plain is the name without the page's marks.
func (f *Feature) plain() string { return strings.ReplaceAll(f.Name, "`", "") }

// Page is docs/kernel-features.md.
func Page() []byte {
	var b strings.Builder
	b.WriteString(`# Kernel features

What of newer kernels this project uses, from which Linux on it is there, and what is done without it. The floor is Linux ` + Floor + `. A feature
is found by trying it, never by the kernel's version; ` + "`berth doctor`" + ` tells what this kernel has. What a kernel lacks and has no
substitute is refused by an error that names the feature and the least Linux.
`)
	for _, s := range Sections {
		b.WriteString("\n## " + s.Title + "\n\n| feature | least | use | without it | cost of that |\n| --- | --- | --- | --- | --- |\n")
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
