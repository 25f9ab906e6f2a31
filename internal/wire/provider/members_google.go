package provider

// What the Gemini API and Vertex AI take, as Content and Part of googleapis/js-genai have it, in both spellings of
// their names. Every other member is refused: "Invalid JSON payload received. Unknown name "x" at 'contents[0]': Cannot
// find field." Null counts as nothing. Only Vertex AI knows displayName.
var (
	geminiContent = object("role parts").holds("parts", geminiPart)

	geminiPart = object("text thought thoughtSignature thought_signature functionCall functionResponse function_call "+
		"function_response inlineData inline_data fileData file_data executableCode executable_code "+
		"codeExecutionResult code_execution_result videoMetadata video_metadata mediaResolution media_resolution "+
		"partMetadata part_metadata toolCall tool_call toolResponse tool_response audioTranscription "+
		"audio_transcription speechMetadata speech_metadata mediaProcessing media_processing").
		holds("functionCall", geminiCall).holds("function_call", geminiCall).
		holds("functionResponse", geminiResponse).holds("function_response", geminiResponse).
		holds("inlineData", geminiBlob).holds("inline_data", geminiBlob).
		holds("fileData", geminiFile).holds("file_data", geminiFile).
		holds("executableCode", object("code language id")).holds("executable_code", object("code language id")).
		holds("codeExecutionResult", object("outcome output id")).
		holds("code_execution_result", object("outcome output id")).
		orText(`{"text":`)

	geminiCall     = object("name args id partialArgs- partial_args- willContinue- will_continue-")
	geminiResponse = object("name response id parts willContinue will_continue scheduling").free("response parts")
	geminiBlob     = object("mimeType mime_type data displayName display_name").free("data")
	geminiFile     = object("mimeType mime_type fileUri file_uri displayName display_name")
)
