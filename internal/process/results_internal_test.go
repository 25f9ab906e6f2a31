package process

import (
	"testing"

	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/persist"
)

func TestStoresAreThoseOfTheSettings(t *testing.T) {
	t.Parallel()
	dir := "file://" + t.TempDir()
	type kinds struct {
		bodies, archives persist.Kind
		outside          int
	}
	for _, tt := range []struct {
		settings config.Results
		want     kinds
	}{
		{config.Results{}, kinds{}},
		{config.Results{URL: dir}, kinds{persist.File, persist.File, 1}},
		{config.Results{Objects: dir}, kinds{persist.Postgres, persist.File, 1}},
		{config.Results{URL: dir, Objects: "postgres"}, kinds{persist.File, persist.Postgres, 1}},
		{config.Results{URL: dir, Objects: "s3://b"}, kinds{persist.File, persist.S3, 2}},
		{config.Results{Objects: "s3://b", Also: []string{dir}}, kinds{persist.Postgres, persist.S3, 2}},
		{config.Results{Also: []string{"s3://b", dir}}, kinds{persist.Postgres, persist.Postgres, 2}},
	} {
		stores, err := resultStores(tt.settings)
		found := kinds{stores.New, stores.ForArchives(), len(stores.Outside)}
		if err != nil || found != tt.want {
			t.Errorf("%+v: %+v, want %+v, %v", tt.settings, found, tt.want, err)
		}
	}
}
