package importer

// foreignKinds are files that hold conversations, or seem to, and are not imported: a refusal says what they are.
var foreignKinds = []struct {
	title  string
	detect func(s sample) bool
}{
	{"the projects of a Claude.ai export", marked("0.prompt_template 0.docs[]", "prompt_template docs[]")},
	{"the users of a Claude.ai export", marked("0.full_name 0.email_address 0.uuid")},
	{"a HAR file of a browser", marked("log.entries[] log.version")},
	{"a Jupyter notebook", marked("cells[] nbformat")},
	{"an export of Slack", marked("type=message ts user|bot_id", "0.type=message 0.ts 0.user|0.bot_id")},
	{"an export of Discord", marked("guild channel messages[]")},
	{"an export of Telegram", marked(
		"messages.0.from_id messages.0.date_unixtime", "name type id messages.0.text_entities",
	)},
	{"Google Takeout's activity", marked("0.header 0.title 0.time !0.role", "0.header 0.titleUrl 0.products[]")},
	{"an agent file of Letta", marked("agents[] tools[] blocks[]", "agent_type messages[] core_memory|message_ids")},
	{"a chat store of LlamaIndex", marked("store class_name", "0.blocks[] 0.role 0.additional_kwargs")},
	{"a state of AutoGen", marked("agent_states type version", "llm_messages_count|agent_states.group_chat_manager")},
	{"a history of Semantic Kernel", marked("0.Role 0.Items[]", "0.role.Label 0.items[]", "0.Role.Label 0.Items[]")},
	{"Haystack's messages", marked("0._role 0._content[]", "_role _content[]")},
	{"a workflow of n8n", marked("nodes[] connections")},
	{"a flow of Langflow or Flowise", marked("data.nodes[] data.edges[]", "nodes[] edges[]")},
	{"an app of Dify", marked("app.mode kind version")},
	{"a character of SillyTavern", marked("spec=chara_card_v2|chara_card_v3")},
	{"a chat of SillyTavern", marked("user_name character_name chat_metadata|create_date")},
	{"a thread of Zed", marked("version messages.0.User|messages.0.Agent|messages.0.segments")},
	{"a Postman collection", marked("info._postman_id item[]")},
	{"an OpenAPI description", marked("openapi paths", "swagger paths")},
	{"a list of tools", marked("0.type=function 0.function.parameters", "0.name 0.input_schema", "tools[] !messages")},
	{"OpenTelemetry's metrics", marked("resourceMetrics[]")},
	{"embeddings", marked("0.object=embedding 0.embedding[]", "object=embedding")},
	{"fine-tuning data of prompts and completions", marked(
		"prompt completion !messages !id", "0.prompt 0.completion !0.messages",
	)},
	{"data of preferences", marked("chosen rejected !conversations", "0.chosen 0.rejected !0.conversations")},
	{"an index of Cursor's or VS Code's chats", marked("composerId conversationMap|fullConversationHeadersOnly")},
}

// foreignKind returns what a file is that is known and not imported, "" for anything else.
func foreignKind(s sample) string {
	for _, kind := range foreignKinds {
		if kind.detect(s) {
			return kind.title
		}
	}
	return ""
}
