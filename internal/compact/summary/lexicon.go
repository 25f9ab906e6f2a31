package summary

import (
	"strings"
	"unicode"
)

// The words that tell what a sentence is, of the languages that agents are spoken to in. In languages that write words
// apart a word, or two words in a row, is looked up; in the others a sentence is searched for a mark. A sentence in a
// language that is not here is told by the exact values in it alone.

// commandWords are how a user says what has to be, whatever else is.
var commandWords = lexicon(`
always|never|must|mustn't|shall|cannot|can't|don't|dont|ensure|required|requirement|mandatory|forbidden|prohibited
strictly|under no|must not|do not|make sure|be sure|not allowed|no more|at least|at most|from now|has to|have to|immer
niemals|nie|muss|müssen|darf|dürfen|unbedingt|verboten|auf keinen|achte darauf|toujours|jamais|doit|doivent|devez
interdit|obligatoire|il faut|assure toi|assurez vous|ne pas|siempre|nunca|debe|deben|debes|prohibido|obligatorio
asegúrate|asegúrese|hay que|no uses|no debe|sempre|deve|devem|deverá|proibido|obrigatório|certifique-se|não use
não deve|mai|devi|devono|vietato|obbligatorio|assicurati|non usare|non deve|всегда|никогда|нельзя|должен|должна|должно
должны|обязательно|запрещено|не используй|не надо|altijd|nooit|moet|moeten|verplicht|verboden|zawsze|nigdy|musi|muszą
trzeba|zabronione|her zaman|asla|mutlaka|zorunlu|yasak|gerekli|olmalı|luôn|không bao|phải|bắt buộc|cấm|đừng|selalu
jangan|harus|wajib|alltid|aldrig|måste|skall|får inte|обов'язково|завжди|ніколи|повинен|πάντα|ποτέ|πρέπει|دائما|دائماً
أبدا|أبداً|يجب|ممنوع|לא|תמיד|חייב|אסור|हमेशा|कभी|चाहिए|मत|अनिवार्य`)

var commandMarks = strings.Fields(`
	必须 必須 务必 務必 不要 不得 不可 不许 不許 禁止 始终 始終 总是 總是 一律 只能 请勿 請勿 切勿 千万 永远 永遠 绝不
	絕不 必ず 常に 絶対 しないで ないでください てはいけない なければ 반드시 항상 절대 금지 하지말 하지마 마세요 해야 필수
	ต้อง ห้าม เสมอ`)

// wishWords are how a user asks for something less strictly.
var wishWords = lexicon(`
should|shouldn't|require|requires|important|avoid|prefer|only|without|unless|deadline|budget|limit|remember|needs
instead of|rather than|need to|please use|keep in|soll|sollen|sollte|nur|ohne|bitte|wichtig|vermeide|devrait|seulement
uniquement|sans|évite|évitez|debería|solo|sólo|solamente|sin|evita|evite|somente|apenas|sem|dovrebbe|soltanto|senza
только|нужно|надо|важно|без|избегай|mag|alleen|zonder|belangrijk|wolno|tylko|bez|ważne|unikaj|sadece|önemli|chỉ|hanya
tanpa|endast|utan|ska|тільки|μόνο|χωρίς|فقط|بدون|تأكد|تجنب|רק|ज़रूर|जरूर|केवल|सिर्फ`)

var wishMarks = strings.Fields(`
	不能 只用 应该 應該 应当 應當 记住 記住 确保 確保 要求 需要 至少 最多 不超过 优先 優先 避免 除非 してください べき
	だけ のみ 以内 以下 避けて 주세요 오직 사용 เท่านั้น`)

// findingWords are how an agent states what it found, did or decided.
var findingWords = lexicon(`
decided|decision|decide|chose|choose|chosen|because|therefore|thus|hence|found|discovered|confirmed|verified|fixed
resolved|solved|implemented|added|removed|deleted|changed|renamed|replaced|created|updated|migrated|installed
configured|deployed|merged|reverted|switched|works|working|passes|passed|passing|fails|failed|failing|failure|error
bug|issue|problem|cause|caused|causes|result|results|total|returns|returned|conclusion|concluded|means|requires
depends|done|complete|completed|finished|unexpected|instead|missing|broken|succeeded|successfully|blocked|approved
rejected|agreed|measured|turns out|root cause|will use|going with|we use|due to|as expected|no longer|the reason
so that|entschieden|entscheidung|gefunden|ursache|behoben|bestätigt|ergebnis|fehler|weil|funktioniert|hinzugefügt
entfernt|geändert|erstellt|fertig|décidé|décision|trouvé|corrigé|confirmé|résultat|erreur|parce|fonctionne|ajouté
supprimé|modifié|créé|terminé|decidido|decisión|encontrado|encontré|corregido|confirmado|resultado|porque|funciona
añadido|eliminado|cambiado|creado|terminado|causa|decisão|encontrei|corrigido|erro|adicionado|removido|alterado|criado
concluído|deciso|decisione|trovato|corretto|risultato|errore|perché|aggiunto|rimosso|modificato|creato|completato
решено|решили|решение|найдено|нашёл|нашел|нашли|причина|исправлено|исправил|подтверждено|результат|ошибка|потому
работает|добавлено|добавил|удалено|изменено|создано|готово|besloten|gevonden|oorzaak|opgelost|resultaat|omdat|werkt
zdecydowano|znaleziono|przyczyna|naprawiono|wynik|błąd|ponieważ|działa|karar|bulundu|neden|düzeltildi|sonuç|hata|çünkü
çalışıyor|quyết định|tìm thấy|nguyên nhân|đã sửa|kết quả|lỗi|diputuskan|ditemukan|penyebab|diperbaiki|hasil|kesalahan
karena|berhasil|قررنا|وجدت|السبب|إصلاح|النتيجة|خطأ|لأن|يعمل|निर्णय|मिला|कारण|ठीक|परिणाम|त्रुटि|क्योंकि`)

var findingMarks = strings.Fields(`
	决定 決定 选择 選擇 選択 采用 採用 因为 因為 所以 原因 发现 發現 确认 確認 修复 修復 修正 解决 解決 完成 完了 成功
	失败 失敗 错误 錯誤 问题 問題 结果 結果 总计 合計 结论 結論 添加 追加 删除 刪除 削除 更新 改为 改為 変更 通过 通過
	判明 エラー ため 결정 원인 발견 확인 수정 해결 완료 성공 실패 오류 문제 결과 결론 추가 삭제 변경 때문`)

// planWords are how an agent says what it is going to do, or what is left to do.
var planWords = lexicon(`
todo|remaining|remains|pending|next|unresolved|outstanding|follow-up|next step|next steps|still need|still needs
still to|not yet|left to|open question|nächste|nächster|nächstes|verbleibt|noch offen|prochaine|prochain|reste à
siguiente|próximo|pendiente|falta|prossimo|resta|далее|осталось|следующий`)

var planMarks = strings.Fields(`
	待办 待辦 下一步 接下来 接下來 剩下 剩余 尚未 还需 還需 次に 残り 未完了 今後 다음 남은 아직`)

// narrationWords begin a sentence that only says what the agent is about to look at.
var narrationWords = lexicon(`
let me|let's|i'll|i will|now i|now let|i'm going|i am|first i|first let|okay|ok|i need|i should`)

var narrationMarks = strings.Fields(`
	让我 讓我 我来 我來 我将 我先 まず では これから 먼저`)

func commanding(sentence string) bool { return tells(sentence, commandWords, commandMarks) }
func demanding(sentence string) bool {
	return commanding(sentence) || tells(sentence, wishWords, wishMarks)
}
func telling(sentence string) bool  { return tells(sentence, findingWords, findingMarks) }
func planning(sentence string) bool { return tells(sentence, planWords, planMarks) }

// narrating also holds for check boxes, which are taken up apart, and for announcements of a list.
func narrating(sentence string) bool {
	if strings.HasPrefix(sentence, "[ ] ") || ticked(sentence) {
		return true
	}
	fields := strings.Fields(strings.ToLower(head(sentence, 40)))
	for n := 1; n <= min(2, len(fields)); n++ {
		if narrationWords[strings.Trim(strings.Join(fields[:n], " "), ",.!")] {
			return true
		}
	}
	for _, mark := range narrationMarks {
		if strings.HasPrefix(sentence, mark) {
			return true
		}
	}
	return false
}

// exact reports whether a sentence holds values that have to be kept as they are: numbers, paths, code, addresses.
func exact(sentence string) bool { return strings.ContainsAny(sentence, "0123456789`/_@$€£¥") }

// lexicon makes a set of words and pairs of words.
func lexicon(words string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.FieldsFunc(words, func(r rune) bool { return r == '|' || r == '\n' }) {
		set[word] = true
	}
	return set
}

// tells reports whether a sentence has one of the words or pairs of words, or one of the marks.
func tells(sentence string, words map[string]bool, marks []string) bool {
	before, wide := "", false
	sentence = strings.ReplaceAll(strings.ToLower(sentence), "’", "'")
	for word := range strings.FieldsFuncSeq(sentence, apart) {
		if words[word] || before != "" && words[before+" "+word] {
			return true
		}
		before, wide = word, wide || word[0] >= 0xE0
	}
	if !wide && !strings.ContainsFunc(sentence, func(r rune) bool { return r >= 0x0E00 }) {
		return false
	}
	for _, mark := range marks {
		if strings.Contains(sentence, mark) {
			return true
		}
	}
	return false
}

// apart reports what stands between words. Marks on letters, as Hindi and Thai write vowels, do not.
func apart(r rune) bool {
	return r != '\'' && r != '-' && !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r)
}
