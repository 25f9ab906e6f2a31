package openapi_test

import (
	"os"
	"testing"

	"github.com/varve-dev/varve/internal/api/openapi"
)

func TestX(t *testing.T) {
	b, _ := os.ReadFile("../../../docs/policy.schema.json")
	d, err := openapi.Load(b)
	if err != nil {
		t.Fatal(err)
	}
	os.WriteFile("/tmp/oa.yaml", d.YAML, 0o644)
	os.WriteFile("/tmp/oa.json", d.JSON, 0o644)
	os.WriteFile("/tmp/oa.html", d.Page, 0o644)
	t.Log(len(d.YAML), len(d.JSON), len(d.Page), d.Style)
}
