package summary

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCommandOfALine(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]command{
		"":                                      {looks: true},
		"ls -la":                                {looks: true},
		"cd /w && git log --oneline | head -3":  {looks: true},
		`python -c "import a; print(a.b)"`:      {looks: true},
		`grep -r "a;b|c" . | wc -l`:             {looks: true},
		"git diff > /tmp/x.patch":               {looks: true},
		"go test ./a -run X 2>&1 | tail -5":     {program: "go test", arguments: []string{"./a", "X"}},
		"cd /w && FOO=1 make lint && ls":        {program: "make lint"},
		"npm run check || npm run fix":          {program: "npm run", arguments: []string{"fix"}},
		"cat a | sh && go vet ./...":            {program: "go vet", arguments: []string{"./..."}},
		`git -C /w commit -m "fix; & more"`:     {program: "git commit", arguments: []string{`"fix;`, "&", `more"`}, commits: true},
		"git add a\ngit commit -F - <<EOF\nx;y": {program: "git commit", commits: true},
		"cat > a.go <<'EOF'\npackage a\nEOF":    {looks: true, writes: []string{"a.go"}},
		"cat <<EOF >> b.txt\nx\nEOF":            {looks: true, writes: []string{"b.txt"}},
		"sed -i 's/a/b/' c.go":                  {program: "sed", arguments: []string{"'s/a/b/'", "c.go"}, writes: []string{"c.go"}},
		"sed -i s/a/b/ src/*.go":                {program: "sed", arguments: []string{"s/a/b/", "src/*.go"}},
		"echo hi >/dev/null 2>&1":               {looks: true},
	} {
		if diff := cmp.Diff(want, commandOf(line), cmp.AllowUnexported(command{})); diff != "" {
			t.Errorf("%q (-want +got):\n%s", line, diff)
		}
	}
}
