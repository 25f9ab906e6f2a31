package wire

func decodeAnthropic(body []byte) []Neutral { return nil }

func encodeAnthropic(e *encoder, run []Neutral) {}
