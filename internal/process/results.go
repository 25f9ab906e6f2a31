package process

import (
	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/persist/object"
)

// resultStores returns the result stores that settings name. It does not ask whether they answer.
func resultStores(settings config.Results) (stores persist.Stores, err error) {
	chosen, err := settings.Stores()
	if err != nil {
		return stores, err
	}
	stores.New, stores.Archives = kindOf(chosen.New), new(kindOf(chosen.Archives))
	stores.Outside = map[persist.Kind]object.Store{}
	for _, of := range chosen.Outside {
		if stores.Outside[kindOf(of)], err = openStore(of, settings.S3); err != nil {
			return stores, err
		}
	}
	return stores, nil
}

func kindOf(of *config.ResultStore) persist.Kind {
	switch {
	case of == nil:
		return persist.Postgres
	case of.Dir != "":
		return persist.File
	}
	return persist.S3
}

func openStore(of *config.ResultStore, s3 config.S3) (object.Store, error) {
	if of.Dir != "" {
		return object.OpenDir(of.Dir)
	}
	endpoint, err := s3.EndpointURL()
	if err != nil {
		return nil, err
	}
	return object.OpenBucket(object.BucketConfig{
		Bucket: of.Bucket, Prefix: of.Prefix, Endpoint: endpoint.Host, Insecure: endpoint.Scheme == "http",
		Region: s3.Region, PathStyle: s3.PathStyle, Keys: s3.Keys,
	})
}
