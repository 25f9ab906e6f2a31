package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strconv"
)

// repeater sends one request over and over on one connection. The views that it reads share two cores with what serves
// them, so it does what it must and no more: it finds the status and the length of an answer, and reads its body.
type repeater struct {
	addr    string
	conn    net.Conn // nil before the first call
	in      *bufio.Reader
	request []byte
	body    []byte
}

// newRepeater prepares GET path with these headers, each "Name: value". It connects with its first call: the server
// closes a connection on which no request comes.
func (b *bench) newRepeater(path string, headers ...string) *repeater {
	request := fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n", path, b.api.addr, b.key)
	for _, header := range headers {
		request = append(append(request, header...), "\r\n"...)
	}
	return &repeater{addr: b.api.addr, request: append(request, "\r\n"...)}
}

func (r *repeater) connect() (err error) {
	if r.conn, err = net.Dial("tcp", r.addr); err == nil {
		r.in = bufio.NewReaderSize(r.conn, 64<<10)
	}
	return err
}

// call sends the request, wants this status, and returns how long the answer's body was.
func (r *repeater) call(want int) (int, error) {
	if r.conn == nil {
		if err := r.connect(); err != nil {
			return 0, err
		}
	}
	if _, err := r.conn.Write(r.request); err != nil {
		return 0, err
	}
	status, err := r.in.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	if len(status) < 12 || string(status[9:12]) != strconv.Itoa(want) {
		return 0, fmt.Errorf("%q instead of %d", bytes.TrimSpace(status), want)
	}
	size, err := r.headers()
	if err != nil {
		return 0, err
	}
	if cap(r.body) < size {
		r.body = make([]byte, size)
	}
	_, err = io.ReadFull(r.in, r.body[:size])
	return size, err
}

// headers reads to the end of the headers and returns the length of the body.
func (r *repeater) headers() (size int, err error) {
	for {
		line, err := r.in.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		if len(line) == 2 {
			return size, nil
		}
		if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			if size, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return 0, err
			}
		}
	}
}
