package wire

func decodeChat(body []byte) []Neutral { return nil }

func encodeChat(e *encoder, run []Neutral) {}
