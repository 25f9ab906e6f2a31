package wire

func decodeResponses(body []byte) []Neutral { return nil }

func encodeResponses(e *encoder, run []Neutral) {}
