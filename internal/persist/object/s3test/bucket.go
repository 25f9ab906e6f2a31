package s3test

import (
	"bufio"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// bucket answers requests as S3 does (https://docs.aws.amazon.com/AmazonS3/latest/API/) that put, get, delete and list
// objects, which are the files below a directory. It knows the caller by the access key and checks no signature.
type bucket struct{ dir, accessKey string }

// failure is an error as S3 answers it.
type failure struct {
	XMLName xml.Name `xml:"Error"`
	Code    string
	status  int
}

func (b bucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	file := filepath.Join(b.dir, filepath.FromSlash(r.URL.Path))
	err := error(nil)
	switch {
	case !strings.Contains(r.Header.Get("Authorization"), "Credential="+b.accessKey+"/"):
		err = fs.ErrPermission
	case r.URL.Query().Has("list-type"):
		err = list(w, file, r.URL.Query().Get("prefix"), r.URL.Query().Get("continuation-token"))
	case r.Method == http.MethodPut:
		err = b.put(w, file, r)
	case r.Method == http.MethodDelete:
		if err = os.Remove(file); err == nil || errors.Is(err, fs.ErrNotExist) {
			w.WriteHeader(http.StatusNoContent)
			return
		}
	case r.Method == http.MethodGet:
		err = get(w, file, r.Header.Get("Range"))
	default:
		err = errors.ErrUnsupported
	}
	if err != nil {
		f := failureOf(err)
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(f.status)
		_ = xml.NewEncoder(w).Encode(f) // the client may be gone
	}
}

var errRange = errors.New("the object ends before the range")

func failureOf(err error) failure {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return failure{Code: "NoSuchKey", status: http.StatusNotFound}
	case errors.Is(err, fs.ErrPermission):
		return failure{Code: "AccessDenied", status: http.StatusForbidden}
	case errors.Is(err, errRange):
		return failure{Code: "InvalidRange", status: http.StatusRequestedRangeNotSatisfiable}
	case errors.Is(err, errors.ErrUnsupported):
		return failure{Code: "NotImplemented", status: http.StatusNotImplemented}
	}
	return failure{Code: "InternalError", status: http.StatusInternalServerError}
}

// put stores an object, whole or not at all.
func (b bucket) put(w http.ResponseWriter, file string, r *http.Request) error {
	body, err := bodyOf(r)
	if err != nil {
		return err
	}
	unfinished, err := os.CreateTemp(b.dir, "") // beside the bucket
	if err != nil {
		return err
	}
	_, err = unfinished.Write(body)
	err = errors.Join(err, unfinished.Close(), os.MkdirAll(filepath.Dir(file), 0o700))
	if err == nil {
		err = os.Rename(unfinished.Name(), file)
	}
	if err == nil {
		w.Header().Set("ETag", `"0"`)
	}
	return err
}

// bodyOf reads a body, which may be in signed chunks
// (https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-streaming.html).
func bodyOf(r *http.Request) (body []byte, err error) {
	if !strings.HasPrefix(r.Header.Get("X-Amz-Content-Sha256"), "STREAMING-") {
		return io.ReadAll(r.Body)
	}
	for in := bufio.NewReader(r.Body); ; {
		head, err := in.ReadString('\n')
		if err != nil {
			return nil, err
		}
		hex, _, _ := strings.Cut(strings.TrimSpace(head), ";")
		size, err := strconv.ParseUint(hex, 16, 32)
		if err != nil || size == 0 {
			return body, err
		}
		chunk := make([]byte, size+2) // with the end of its line
		if _, err := io.ReadFull(in, chunk); err != nil {
			return nil, err
		}
		body = append(body, chunk[:size]...)
	}
}

// get answers with an object or a range of it.
func get(w http.ResponseWriter, file, within string) error {
	body, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if first, last := 0, 0; within != "" {
		if _, err := fmt.Sscanf(within, "bytes=%d-%d", &first, &last); err != nil {
			return errors.ErrUnsupported
		}
		if first >= len(body) {
			return errRange
		}
		last = min(last, len(body)-1)
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", first, last, len(body)))
		body = body[first : last+1]
	}
	w.Header().Set("ETag", `"0"`)
	w.Header().Set("Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	if within != "" {
		w.WriteHeader(http.StatusPartialContent)
	}
	_, _ = w.Write(body) // the client may be gone
	return nil
}

// listed is a page of a list of objects.
type listed struct {
	XMLName               xml.Name `xml:"ListBucketResult"`
	IsTruncated           bool
	NextContinuationToken string `xml:",omitempty"`
	Contents              []content
}

type content struct {
	Key, LastModified, ETag string
	Size                    int64
}

// pageSize is how many objects a page has.
const pageSize = 1000

// list answers with the objects whose keys begin with prefix and come after another key.
func list(w http.ResponseWriter, dir, prefix, after string) error {
	var page listed
	err := filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		key, err := filepath.Rel(dir, file)
		info, infoErr := entry.Info()
		if key = filepath.ToSlash(key); err == nil && infoErr == nil && strings.HasPrefix(key, prefix) && key > after {
			page.Contents = append(page.Contents, content{
				Key: key, Size: info.Size(), LastModified: info.ModTime().UTC().Format("2006-01-02T15:04:05.000Z"),
			})
		}
		return err
	})
	if err != nil {
		return err
	}
	slices.SortFunc(page.Contents, func(a, b content) int { return strings.Compare(a.Key, b.Key) })
	if len(page.Contents) > pageSize {
		page.Contents, page.IsTruncated = page.Contents[:pageSize], true
		page.NextContinuationToken = page.Contents[pageSize-1].Key
	}
	return xml.NewEncoder(w).Encode(page)
}
