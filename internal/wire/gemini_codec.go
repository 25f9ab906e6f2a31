package wire

func decodeGemini(body []byte) []Neutral { return nil }

func encodeGemini(e *encoder, run []Neutral) {}
