// Package rawjson walks JSON text without decoding it: it checks a text strictly in one pass, and afterwards hands
// out members, elements and strings as byte ranges. The standard decoder replaces lone surrogates, drops duplicate
// keys and costs several passes; a store that promises bytes back needs to look without touching.
//
// Start at Check, which must pass before anything else here is called; then Members, Elements and Unquote.
package rawjson
