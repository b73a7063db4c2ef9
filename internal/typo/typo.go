package typo

// Meant is the one of the names that is most like a word, "" where none is like it.
func Meant(word string, names []string) string {
	best, least := "", 1+len(word)/4 // a letter, and one more for every four
	for _, name := range names {
		// As many letters as one is longer have to be put in: a word of megabytes is not compared.
		if max(len(word)-len(name), len(name)-len(word)) > least {
			continue
		}
		if n := edits(word, name); n <= least && (best == "" || n < least) {
			best, least = name, n
		}
	}
	if best == word {
		return ""
	}
	return best
}

// edits counts the letters to be put in, left out, changed or swapped with their
// neighbour to make one word of the other.
func edits(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			change := last[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
