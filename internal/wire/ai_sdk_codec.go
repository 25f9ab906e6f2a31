package wire

func decodeAISDK(body []byte) []Neutral { return nil }

func encodeAISDK(e *encoder, run []Neutral) {}
