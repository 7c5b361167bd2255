package image

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// debuginfod fetches files by build ID from the servers a user has named in
// $DEBUGINFOD_URLS, and keeps them where the client of elfutils does
// (debuginfod_find_debuginfo(3)), so that each is fetched once by all tools.
type debuginfod struct {
	urls    []string
	dir     string
	client  http.Client
	maxSize int64
	failed  map[string]bool // by what was asked for
}

const (
	defaultDebuginfodTimeout = 90 * time.Second
	maxDebuginfodFile        = 4 << 30
)

// newDebuginfod returns nil if no server is named.
func newDebuginfod(urls string) *debuginfod {
	d := &debuginfod{maxSize: maxDebuginfodFile, failed: map[string]bool{}}
	for _, u := range strings.Fields(urls) {
		if strings.HasPrefix(u, "http://") || strings.HasPrefix(u, "https://") {
			d.urls = append(d.urls, strings.TrimSuffix(u, "/"))
		}
	}
	if d.urls == nil {
		return nil
	}
	if d.dir = os.Getenv("DEBUGINFOD_CACHE_PATH"); d.dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return nil
		}
		d.dir = filepath.Join(cache, "debuginfod_client")
	}
	d.client.Timeout = defaultDebuginfodTimeout
	if n, err := strconv.Atoi(os.Getenv("DEBUGINFOD_TIMEOUT")); err == nil && n > 0 {
		d.client.Timeout = time.Duration(n) * time.Second
	}
	if n, err := strconv.ParseInt(os.Getenv("DEBUGINFOD_MAXSIZE"), 10, 64); err == nil && n > 0 {
		d.maxSize = min(d.maxSize, n)
	}
	return d
}

// find returns the path of a file, "" if no server has it: what is
// "debuginfo" or "executable".
func (d *debuginfod) find(id, what string) (string, error) {
	if d == nil || buildIDPath(id) == "" || d.failed[what+id] {
		return "", nil
	}
	path := filepath.Join(d.dir, id, what)
	if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() && st.Size() > 0 {
		return path, nil
	}
	var last error
	for _, u := range d.urls {
		err := d.fetch(u+"/buildid/"+id+"/"+what, path)
		if err == nil {
			return path, nil
		}
		if !errors.Is(err, os.ErrNotExist) {
			last = err
		}
	}
	d.failed[what+id] = true
	return "", last
}

// fetch writes what a server answers to path, whole or not at all.
func (d *debuginfod) fetch(url, path string) error {
	resp, err := d.client.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusNotFound:
		return os.ErrNotExist
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("%s: %s", url, resp.Status)
	case resp.ContentLength > d.maxSize:
		return fmt.Errorf("%s: %d bytes, more than %d", url, resp.ContentLength, d.maxSize)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".fetch")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	n, err := io.Copy(f, io.LimitReader(resp.Body, d.maxSize+1))
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil && n > d.maxSize {
		err = fmt.Errorf("%s: more than %d bytes", url, d.maxSize)
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// fetched opens a file of an image that is not on this host, nil if no server
// is named or has it.
func (im *Image) fetched(id, what string) *elfFile {
	path, err := im.store.debuginfod.find(id, what)
	if err != nil {
		im.problems = append(im.problems, Problem{Image: im, Path: "debuginfod", Kind: Missing, What: err.Error()})
	}
	if path == "" {
		return nil
	}
	return im.openQuietly([]string{path}, id)
}
