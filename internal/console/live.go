package console

// showEvents passes the tenant's events on to a page, as they come and for as long as the key holds: the API writes to
// the browser itself.
func showEvents(v *visit) error {
	stream, err := v.asked("/v1/events")
	if err != nil {
		return err
	}
	stream.Header.Set("Accept", "text/event-stream")
	stream.URL.RawQuery = v.r.URL.RawQuery
	if last := v.r.Header.Get("Last-Event-ID"); last != "" {
		stream.Header.Set("Last-Event-ID", last)
	}
	v.site.API.ServeHTTP(v.w, inside{v.site.API, v.r.RemoteAddr}.served(stream))
	return nil
}
