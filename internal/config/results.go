package config

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"strings"
	"time"
)

// Results says where the bodies of results lie. The zero value is PostgreSQL.
type Results struct {
	URL     string        `name:"results" env:"VARVE_RESULTS" default:"postgres" help:"Or file:///DIR, or s3://BUCKET."`
	Objects string        `name:"objects" env:"VARVE_OBJECTS" help:"Where archives go, if elsewhere."`
	Also    []string      `name:"results-also" env:"VARVE_RESULTS_ALSO" help:"Stores in which results lie besides."`
	Grace   time.Duration `name:"results-grace" env:"VARVE_RESULTS_GRACE" default:"24h" help:"Until waste is deleted."`

	S3 `embed:"" prefix:"s3-"`
}

// S3 says how an S3-compatible store is reached.
type S3 struct {
	Endpoint      string `env:"VARVE_S3_ENDPOINT" default:"https://s3.amazonaws.com" help:"URL of the S3 store."`
	Region        string `env:"VARVE_S3_REGION" default:"us-east-1" help:"Region of the bucket."`
	PathStyle     bool   `env:"VARVE_S3_PATH_STYLE" help:"Write the bucket into the path, not into the host."`
	AccessKey     string `env:"VARVE_S3_ACCESS_KEY" hidden:"" help:"Access key; AWS's own settings if it is not given."`
	AccessKeyFile string `env:"VARVE_S3_ACCESS_KEY_FILE" help:"File with the access key."`
	SecretKey     string `env:"VARVE_S3_SECRET_KEY" hidden:"" help:"Secret key."`
	SecretKeyFile string `env:"VARVE_S3_SECRET_KEY_FILE" help:"File with the secret key."`
}

// ResultStore is a store outside PostgreSQL.
type ResultStore struct {
	Dir            string // of a file system, else ""
	Bucket, Prefix string // of an S3-compatible store
}

// StoreChoice says which stores there are, and what goes where. A store that is nil is PostgreSQL.
type StoreChoice struct {
	New      *ResultStore   // for new bodies
	Archives *ResultStore   // for new archives
	Outside  []*ResultStore // all but PostgreSQL, each once
}

// Stores returns the stores that the settings name.
func (r Results) Stores() (c StoreChoice, err error) {
	c.New, err = c.add("--results (VARVE_RESULTS)", cmp.Or(r.URL, "postgres"))
	c.Archives = c.New
	if r.Objects != "" {
		var objectsErr error
		c.Archives, objectsErr = c.add("--objects (VARVE_OBJECTS)", r.Objects)
		err = errors.Join(err, objectsErr)
	}
	for _, text := range r.Also {
		_, alsoErr := c.add("--results-also (VARVE_RESULTS_ALSO)", text)
		err = errors.Join(err, alsoErr)
	}
	kinds := map[bool]int{}
	for _, store := range c.Outside {
		kinds[store.Dir != ""]++
	}
	if kinds[true] > 1 || kinds[false] > 1 {
		err = errors.Join(err, errors.New("--results, --objects and --results-also (VARVE_RESULTS, VARVE_OBJECTS, "+
			"VARVE_RESULTS_ALSO) name two stores of one kind: there can be one directory and one bucket"))
	}
	return c, err
}

// add returns the store that a setting names, which is one of those outside from then on.
func (c *StoreChoice) add(name, text string) (*ResultStore, error) {
	store, err := parseStore(name, text)
	if err != nil || store == nil {
		return nil, err
	}
	for _, known := range c.Outside {
		if *known == *store {
			return known, nil
		}
	}
	c.Outside = append(c.Outside, store)
	return store, nil
}

// parseStore parses the URL of a store; nil is PostgreSQL.
func parseStore(name, text string) (*ResultStore, error) {
	if text == "postgres" {
		return nil, nil
	}
	parsed, err := url.Parse(text)
	if err == nil && parsed.User == nil && parsed.RawQuery == "" && parsed.Fragment == "" {
		switch {
		case parsed.Scheme == "file" && parsed.Host == "" && path.IsAbs(parsed.Path):
			return &ResultStore{Dir: path.Clean(parsed.Path)}, nil
		case parsed.Scheme == "s3" && parsed.Host != "":
			return &ResultStore{Bucket: parsed.Host, Prefix: strings.Trim(parsed.Path, "/")}, nil
		}
	}
	return nil, check(false, name, text, "postgres, file:///directory or s3://bucket/prefix")
}

// Validate checks the URLs' form and the range, and reads the files of the keys.
func (r Results) Validate() error {
	_, err := r.Stores()
	endpoint, endpointErr := r.S3.EndpointURL()
	if endpointErr == nil {
		endpointErr = check(endpoint.Path == "" || endpoint.Path == "/",
			"--s3-endpoint (VARVE_S3_ENDPOINT)", r.Endpoint, "a URL without a path")
	}
	_, _, keysErr := r.S3.Keys()
	return errors.Join(err, check(r.Grace == 0 || r.Grace >= time.Hour,
		"--results-grace (VARVE_RESULTS_GRACE)", r.Grace, "at least 1h"), endpointErr, keysErr)
}

// EndpointURL returns the URL of the S3-compatible store.
func (s S3) EndpointURL() (*url.URL, error) {
	text := cmp.Or(s.Endpoint, "https://s3.amazonaws.com")
	parsed, err := url.Parse(text)
	if err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
		return nil, check(false, "--s3-endpoint (VARVE_S3_ENDPOINT)", text, "a URL, e.g. https://s3.example:9000")
	}
	return parsed, nil
}

// Keys returns the keys of the S3-compatible store, empty if there are none of our own.
func (s S3) Keys() (access, secret string, err error) {
	access, accessErr := keyOf("VARVE_S3_ACCESS_KEY", s.AccessKey, s.AccessKeyFile)
	secret, secretErr := keyOf("VARVE_S3_SECRET_KEY", s.SecretKey, s.SecretKeyFile)
	err = errors.Join(accessErr, secretErr)
	if err == nil && (access == "") != (secret == "") {
		err = errors.New("VARVE_S3_ACCESS_KEY and VARVE_S3_SECRET_KEY, or their _FILE: one is given without the other")
	}
	return access, secret, err
}

// keyOf returns a key that is given as it is or in a file.
func keyOf(name, key, file string) (string, error) {
	if file == "" {
		return key, nil
	}
	if key != "" {
		return "", fmt.Errorf("%s and %s_FILE are both given: leave one out", name, name)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("%s_FILE: %w", name, err)
	}
	return strings.TrimSpace(string(text)), nil
}
