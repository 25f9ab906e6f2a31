package text

import "unicode/utf8"

// The five systems estimate a text's tokens by its length alone, each in its own way. Varve's own estimate, which knows
// scripts, is in internal/tokens; these are for the profiles that follow a system to the letter.

// UTF16Quarters is a token for each four characters begun: cortex and falai.
func UTF16Quarters(t []byte) int { return (Len(t) + 3) / 4 }

// CodePointQuarters is a token for each four whole code points: llm-proxy.
func CodePointQuarters(t []byte) int { return utf8.RuneCount(t) / 4 }

// ByteQuarters is a token for each four bytes begun: codelia.
func ByteQuarters(t []byte) int { return (len(t) + 3) / 4 }
