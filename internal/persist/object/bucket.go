package object

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// BucketConfig says where a bucket is.
type BucketConfig struct {
	Bucket    string
	Prefix    string // of all names, without a slash at its ends; may be empty
	Endpoint  string // host and port
	Insecure  bool   // http
	Region    string
	PathStyle bool // the bucket's name is in the path, not in the host
	// Keys returns the access key and the secret key. Where the access key is empty, the credentials are those of the
	// environment, see credentials.EnvAWS and IAM.
	Keys func() (access, secret string, err error) `json:"-"`
}

// fileKeys are keys that may be in files, which are read again when a request begins.
type fileKeys func() (access, secret string, err error)

// RetrieveWithCredContext implements credentials.Provider.
func (k fileKeys) RetrieveWithCredContext(*credentials.CredContext) (credentials.Value, error) {
	return k.Retrieve()
}

// Retrieve implements credentials.Provider.
func (k fileKeys) Retrieve() (v credentials.Value, err error) {
	v.SignerType = credentials.SignatureV4
	v.AccessKeyID, v.SecretAccessKey, err = k()
	return v, err
}

// IsExpired implements credentials.Provider: another key may be there.
func (fileKeys) IsExpired() bool { return true }

// Bucket is a bucket of an S3-compatible store, or the part of it below a prefix.
type Bucket struct {
	client *minio.Client
	config BucketConfig
}

// bucketRetries is how often a request is sent before the store counts as down.
const bucketRetries = 3

// OpenBucket returns the store in a bucket, which must be there. It sends nothing.
func OpenBucket(config BucketConfig) (*Bucket, error) {
	access, _, err := config.Keys()
	if err != nil {
		return nil, err
	}
	keys := credentials.New(fileKeys(config.Keys))
	if access == "" {
		keys = credentials.NewChainCredentials([]credentials.Provider{
			&credentials.EnvAWS{}, &credentials.IAM{Client: http.DefaultClient},
		})
	}
	lookup := minio.BucketLookupAuto
	if config.PathStyle {
		lookup = minio.BucketLookupPath
	}
	client, err := minio.New(config.Endpoint, &minio.Options{
		Creds: keys, Secure: !config.Insecure, Region: config.Region, BucketLookup: lookup, MaxRetries: bucketRetries,
	})
	return &Bucket{client: client, config: config}, err
}

// String returns the URL of the bucket.
func (b *Bucket) String() string {
	return strings.TrimSuffix("s3://"+b.config.Bucket+"/"+b.config.Prefix, "/")
}

// key returns the key of an object.
func (b *Bucket) key(name string) string {
	if b.config.Prefix == "" {
		return name
	}
	return b.config.Prefix + "/" + name
}

// Put stores an object in one request.
func (b *Bucket) Put(ctx context.Context, name string, body []byte) error {
	if err := check(name); err != nil {
		return err
	}
	_, err := b.client.PutObject(ctx, b.config.Bucket, b.key(name), bytes.NewReader(body), int64(len(body)),
		minio.PutObjectOptions{ContentType: "application/octet-stream", DisableMultipart: true})
	return down(ctx, b, err)
}

// Get reads a part of an object.
func (b *Bucket) Get(ctx context.Context, name string, at int64, size int) ([]byte, error) {
	if err := check(name); err != nil || size == 0 {
		return nil, err
	}
	var options minio.GetObjectOptions
	if err := options.SetRange(at, at+int64(size)-1); err != nil {
		return nil, err
	}
	object, _, _, err := minio.Core{Client: b.client}.GetObject(ctx, b.config.Bucket, b.key(name), options)
	switch minio.ToErrorResponse(err).Code {
	case minio.NoSuchKey:
		return nil, fmt.Errorf("%s: %w", name, ErrMissing)
	case minio.InvalidRange: // it ends before
		return nil, nil
	}
	if err != nil {
		return nil, down(ctx, b, err)
	}
	defer object.Close()
	body, err := io.ReadAll(io.LimitReader(object, int64(size)))
	return body, down(ctx, b, err)
}

// Delete deletes an object.
func (b *Bucket) Delete(ctx context.Context, name string) error {
	if err := check(name); err != nil {
		return err
	}
	err := b.client.RemoveObject(ctx, b.config.Bucket, b.key(name), minio.RemoveObjectOptions{})
	if minio.ToErrorResponse(err).Code == minio.NoSuchKey {
		return nil
	}
	return down(ctx, b, err)
}

// List lists the keys below a prefix.
func (b *Bucket) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		if prefix != "" {
			if err := check(prefix); err != nil {
				yield(Info{}, err)
				return
			}
			prefix += "/"
		}
		listing, stop := context.WithCancel(ctx)
		defer stop()
		listed := b.client.ListObjectsIter(listing, b.config.Bucket, minio.ListObjectsOptions{
			Prefix: b.key(prefix), Recursive: true,
		})
		for object := range listed {
			if object.Err != nil {
				yield(Info{}, down(ctx, b, object.Err))
				return
			}
			name := strings.TrimPrefix(strings.TrimPrefix(object.Key, b.config.Prefix), "/")
			if !yield(Info{Name: name, Size: object.Size, Modified: object.LastModified}, nil) {
				return
			}
		}
		if err := ctx.Err(); err != nil { // which ends the list, too
			yield(Info{}, err)
		}
	}
}
