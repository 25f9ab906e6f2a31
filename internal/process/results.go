package process

import (
	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/persist/object"
)

// resultStores returns the result stores that settings name. It does not ask whether they answer.
func resultStores(settings config.Results) (stores persist.Stores, err error) {
	first, others, err := settings.Stores()
	if err != nil {
		return stores, err
	}
	stores.Outside = map[persist.Kind]object.Store{}
	for i, of := range append([]*config.ResultStore{first}, others...) {
		if of == nil {
			continue
		}
		kind, store, err := openStore(of, settings.S3)
		if err != nil {
			return stores, err
		}
		stores.Outside[kind] = store
		if i == 0 {
			stores.New = kind
		}
	}
	return stores, nil
}

func openStore(of *config.ResultStore, s3 config.S3) (persist.Kind, object.Store, error) {
	if of.Dir != "" {
		store, err := object.OpenDir(of.Dir)
		return persist.File, store, err
	}
	endpoint, err := s3.EndpointURL()
	if err != nil {
		return 0, nil, err
	}
	access, secret, err := s3.Keys()
	if err != nil {
		return 0, nil, err
	}
	store, err := object.OpenBucket(object.BucketConfig{
		Bucket: of.Bucket, Prefix: of.Prefix, Endpoint: endpoint.Host, Insecure: endpoint.Scheme == "http",
		Region: s3.Region, PathStyle: s3.PathStyle, AccessKey: access, SecretKey: secret,
	})
	return persist.S3, store, err
}
