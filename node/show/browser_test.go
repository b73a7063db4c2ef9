package show

import (
	"encoding/json"
	"html"
	"image"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// browser finds one that can be run without a screen.
func browser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("there is no Chromium here (Debian has it in the package chromium-headless-shell)")
	return ""
}

// look lets the browser do something with a page.
func look(t *testing.T, page []byte, options ...string) []byte {
	t.Helper()
	program, dir := browser(t), t.TempDir()
	file := filepath.Join(dir, "node.html")
	if err := os.WriteFile(file, page, 0o644); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--user-data-dir=" + filepath.Join(dir, "profile"),
		"--window-size=1000,1200", "--force-device-scale-factor=1"}, options...)
	cmd := exec.Command(program, append(args, "file://"+file)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", program, err)
	}
	return out
}

// measure is a script that puts what the browser laid out into the title. The
// page itself has none, and forbids any.
const measure = `<script>
const parts = {};
for (const p of document.querySelectorAll('#resource-memory .bar .part')) parts[p.className.split(' ')[1]] = p.getBoundingClientRect().width;
const boxes = {};
for (const b of document.querySelectorAll('.boxes > .box')) boxes[b.querySelector('b').textContent] = b.getBoundingClientRect().width * b.getBoundingClientRect().height;
document.title = JSON.stringify({parts, boxes, bar: document.querySelector('#resource-memory .bar').getBoundingClientRect().width,
	wide: document.documentElement.scrollWidth - window.innerWidth});
</script>`

func TestPageInABrowser(t *testing.T) {
	n := node(t)
	page := string(HTML(n, time.Now()))
	policy := regexp.MustCompile(`<meta http-equiv="Content-Security-Policy"[^>]*>`)
	if !policy.MatchString(page) {
		t.Fatal("the page has no policy")
	}
	dom := string(look(t, []byte(strings.Replace(policy.ReplaceAllString(page, ""), "</html>", measure+"</html>", 1)), "--dump-dom"))
	m := regexp.MustCompile(`<title>(.*?)</title>`).FindStringSubmatch(dom)
	var got struct {
		Parts, Boxes map[string]float64
		Bar, Wide    float64
	}
	if m == nil || json.Unmarshal([]byte(html.UnescapeString(m[1])), &got) != nil {
		t.Fatalf("the browser measured nothing: %.2000s", dom)
	}
	// 8 GiB: 1 for the system, 0.5 for kube, 0.5 kept free, 6 for workloads.
	for part, share := range map[string]float64{"system": 1. / 8, "kube": .5 / 8, "eviction": .5 / 8, "workloads": 6. / 8} {
		if width := got.Parts[part] / got.Bar; width < share-0.01 || width > share+0.01 {
			t.Errorf("%s is drawn %.3f wide, and is %.3f of the memory", part, width, share)
		}
	}
	for _, name := range []string{"system.slice", "kubernetes.slice", "kubepods.slice", "user.slice"} {
		if got.Boxes[name] < 1000 {
			t.Errorf("the box of %s has %v pixels", name, got.Boxes[name])
		}
	}
	if got.Wide > 0 {
		t.Errorf("the page is %v pixels wider than the window", got.Wide)
	}

	shot := filepath.Join(t.TempDir(), "page.png")
	look(t, []byte(page), "--screenshot="+shot)
	f, err := os.Open(shot)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	picture, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]color.RGBA{"system": {0x2f, 0x6f, 0xb5, 255}, "workloads": {0x2e, 0x8b, 0x57, 255}} {
		if pixels := count(picture, c); pixels < 2000 {
			t.Errorf("the colour of %s is on %d pixels", name, pixels)
		}
	}
}

func count(p image.Image, c color.Color) int {
	n := 0
	r, g, b, _ := c.RGBA()
	for y := p.Bounds().Min.Y; y < p.Bounds().Max.Y; y++ {
		for x := p.Bounds().Min.X; x < p.Bounds().Max.X; x++ {
			if r2, g2, b2, _ := p.At(x, y).RGBA(); r == r2 && g == g2 && b == b2 {
				n++
			}
		}
	}
	return n
}
