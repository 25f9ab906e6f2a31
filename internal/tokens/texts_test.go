package tokens_test

// Texts in several scripts, written for these tests: the weights were not fitted to them.
const (
	english = `The river had been low all summer, and by September you could walk across it without wetting your knees. Nobody in the
village remembered such a year. Old Martha said that the mill would have to close, that the miller's sons would go to the coast
and look for work there, and that the geese would follow them; but she had said as much in other years, when there was too much
water instead of too little. On the third of October it began to rain, quietly at first, then with great determination, and the
children ran down to the bridge to see whether the stones were still there. They were not. In the evening the mill wheel turned.
`
	german = `Der Fluss war den ganzen Sommer über niedrig gewesen, und im September konnte man ihn durchqueren, ohne sich die Knie nass zu
machen. Niemand im Dorf erinnerte sich an ein solches Jahr. Die alte Martha meinte, die Mühle müsse schließen, die Söhne des Müllers
würden an die Küste gehen und dort Arbeit suchen, und die Gänse würden ihnen folgen. Am dritten Oktober begann es zu regnen, erst
leise, dann sehr entschlossen, und die Kinder liefen zur Brücke, um zu sehen, ob die Steine noch da waren. Am Abend drehte sich das Rad.
`
	russian = `Всё лето река стояла низко, и в сентябре её можно было перейти, не замочив колен. Никто в деревне не помнил такого года. Старая
Марфа говорила, что мельницу придётся закрыть, что сыновья мельника уедут к морю искать работу и что гуси уйдут за ними. Но то же самое
она говорила и в другие годы, когда воды было не слишком мало, а слишком много. Третьего октября пошёл дождь, сначала тихо, потом всё
сильнее, и дети побежали к мосту посмотреть, видны ли ещё камни. Камней уже не было видно. Вечером колесо мельницы снова завертелось.
`
	greek = `Όλο το καλοκαίρι το ποτάμι είχε λίγο νερό, και τον Σεπτέμβριο μπορούσες να το περάσεις χωρίς να βραχούν τα γόνατά σου. Κανείς στο
χωριό δεν θυμόταν τέτοια χρονιά. Η γριά Μάρθα έλεγε ότι ο μύλος θα κλείσει, ότι οι γιοι του μυλωνά θα φύγουν για την ακτή να βρουν
δουλειά και ότι οι χήνες θα τους ακολουθήσουν. Στις τρεις Οκτωβρίου άρχισε να βρέχει, στην αρχή σιγά, έπειτα με πολλή δύναμη, και τα
παιδιά έτρεξαν στη γέφυρα για να δουν αν οι πέτρες ήταν ακόμη εκεί. Το βράδυ ο τροχός του μύλου γύριζε πάλι.
`
	arabic = `كان النهر منخفضا طوال الصيف، وفي سبتمبر كان بإمكانك أن تعبره دون أن تبتل ركبتاك. لم يتذكر أحد في القرية سنة مثل هذه. قالت العجوز
مرثا إن الطاحونة ستغلق أبوابها، وإن أبناء الطحان سيذهبون إلى الساحل ليبحثوا عن عمل هناك، وإن الإوز سيتبعهم. لكنها قالت الشيء نفسه في
سنوات أخرى، عندما كان الماء كثيرا لا قليلا. في الثالث من أكتوبر بدأ المطر يهطل، بهدوء في البداية ثم بقوة كبيرة، وركض الأطفال إلى الجسر
ليروا هل الحجارة ما زالت هناك. وفي المساء دارت عجلة الطاحونة من جديد.
`
	hindi = `पूरी गर्मी नदी में पानी कम रहा, और सितंबर तक आप घुटने भिगोए बिना उसे पार कर सकते थे। गाँव में किसी को ऐसा साल याद नहीं था। बूढ़ी मार्था
कहती थी कि चक्की बंद करनी पड़ेगी, कि चक्कीवाले के बेटे काम ढूँढने समुद्र के किनारे चले जाएँगे और हंस उनके पीछे जाएँगे। लेकिन यही बात वह
दूसरे सालों में भी कहती थी, जब पानी बहुत कम नहीं बल्कि बहुत ज़्यादा होता था। तीन अक्टूबर को बारिश शुरू हुई, पहले धीरे, फिर बहुत ज़ोर से, और
बच्चे पुल की ओर दौड़े यह देखने कि पत्थर अब भी वहाँ हैं या नहीं। शाम को चक्की का पहिया फिर घूमने लगा।
`
	chinese = `整个夏天河水都很浅，到了九月，人们可以不打湿膝盖就走到对岸。村里没有人记得有过这样的年份。老玛莎说磨坊只好关门，磨坊主的儿子们会到海边去找活干，
鹅也会跟着他们走。不过在别的年份，当水不是太少而是太多的时候，她也说过同样的话。十月三日开始下雨，起初很轻，后来越下越大，孩子们跑到桥边去看石头还在不在。
石头已经看不见了。到了晚上，磨坊的轮子又转了起来，老玛莎坐在窗前听着水声，什么也没有说。第二天早晨，邻居们带着面粉袋子来了，院子里又热闹起来。
`
	japanese = `夏のあいだずっと川の水は少なく、九月になると膝を濡らさずに歩いて渡ることができた。村でこんな年を覚えている人はいなかった。マルタおばあさんは、
水車小屋は閉めるしかない、粉屋の息子たちは仕事を探しに海辺へ行き、ガチョウもついて行くだろうと言った。けれども水が少なすぎるのではなく多すぎた年にも、
彼女は同じことを言っていた。十月三日に雨が降りはじめ、はじめは静かに、やがて激しくなり、子どもたちは石がまだ見えるか橋まで走って見に行った。夜には水車がまた回りだした。
`
	korean = `여름 내내 강물이 얕아서 구월이 되자 무릎을 적시지 않고도 걸어서 건널 수 있었다. 마을에서 이런 해를 기억하는 사람은 아무도 없었다. 마르타 할머니는
방앗간 문을 닫아야 할 것이고, 방앗간 주인의 아들들은 일자리를 찾아 바닷가로 떠날 것이며, 거위들도 그들을 따라갈 것이라고 말했다. 하지만 물이 너무 적은 것이 아니라
너무 많았던 해에도 할머니는 같은 말을 했다. 시월 삼일에 비가 내리기 시작했는데, 처음에는 조용히, 나중에는 세차게 내렸고, 아이들은 돌이 아직 보이는지 다리로 달려가 보았다.
`
	thai = `ตลอดฤดูร้อนน้ำในแม่น้ำตื้นมาก พอถึงเดือนกันยายนก็เดินข้ามได้โดยหัวเข่าไม่เปียก ไม่มีใครในหมู่บ้านจำปีแบบนี้ได้ ยายมาร์ธาบอกว่าโรงสีคงต้องปิด
ลูกชายของเจ้าของโรงสีจะไปหางานทำที่ชายทะเล และห่านก็จะตามพวกเขาไป แต่ในปีอื่นที่น้ำไม่ได้น้อยเกินไปแต่มากเกินไป ยายก็พูดแบบเดียวกัน วันที่สามตุลาคมฝนเริ่มตก
ตอนแรกเบา ๆ แล้วก็แรงขึ้นเรื่อย ๆ เด็ก ๆ วิ่งไปที่สะพานเพื่อดูว่าก้อนหินยังอยู่หรือไม่ ตอนเย็นกังหันน้ำก็หมุนอีกครั้ง
`
	hebrew = `כל הקיץ היה הנהר רדוד, ובספטמבר אפשר היה לחצות אותו בלי להרטיב את הברכיים. איש בכפר לא זכר שנה כזאת. מרתה הזקנה אמרה שהטחנה
תיסגר, שבניו של הטוחן ילכו אל החוף לחפש שם עבודה ושהאווזים ילכו אחריהם. אבל כך אמרה גם בשנים אחרות, כשהיו מים רבים מדי ולא מעטים מדי.
בשלושה באוקטובר התחיל לרדת גשם, תחילה בשקט ואחר כך בעוז, והילדים רצו אל הגשר לראות אם האבנים עדיין שם. בערב הסתובב שוב גלגל הטחנה.
`
	code = `// window keeps the newest readings of a sensor; it is not safe for concurrent use.
type window struct {
	readings []float64
	next     int
	full     bool
}

func (w *window) push(value float64) {
	w.readings[w.next] = value
	if w.next++; w.next == len(w.readings) {
		w.next, w.full = 0, true
	}
}

func (w *window) mean() (sum float64, err error) {
	count := w.next
	if w.full {
		count = len(w.readings)
	}
	if count == 0 {
		return 0, errors.New("mean of an empty window")
	}
	for _, value := range w.readings[:count] {
		sum += value
	}
	return sum / float64(count), nil
}

def rolling_mean(values: list[float], size: int = 10) -> list[float]:
    """Return the mean of each run of size values."""
    if size <= 0:
        raise ValueError(f"size must be positive, not {size}")
    return [sum(values[i:i + size]) / size for i in range(len(values) - size + 1)]

SELECT s.id, avg(r.value) AS mean FROM sensors s JOIN readings r ON r.sensor_id = s.id WHERE r.taken_at > now() - interval '1 day' GROUP BY s.id;
`
	jsonText = `{"orders": [{"id": "ord_8Fq2Lx", "customer": {"name": "Ada Brandt", "email": "ada@example.org"}, "placed_at": "2026-03-14T09:26:53Z",
"lines": [{"sku": "MX-4411", "quantity": 2, "unit_price": 18.50, "discount": null}, {"sku": "TK-0907", "quantity": 1, "unit_price": 240.00, "discount": 0.15}],
"total": 241.00, "currency": "EUR", "paid": true, "tags": ["gift", "express"]}, {"id": "ord_1Zp7Qw", "customer": {"name": "Olu Adeyemi", "email": "olu@example.org"},
"placed_at": "2026-03-15T17:02:11Z", "lines": [{"sku": "MX-4411", "quantity": 5, "unit_price": 18.50, "discount": 0.05}], "total": 87.88, "currency": "EUR",
"paid": false, "tags": []}], "next_cursor": "eyJhZnRlciI6Im9yZF8xWnA3UXcifQ", "has_more": true, "request_id": "7d1c2f6e-90b4-4f0e-8a53-1f6f2b9c0e77"}
`
	listing = `drwxr-xr-x  5 build build   4096 Feb 11 08:31 internal
-rw-r--r--  1 build build  18211 Feb 11 08:31 go.sum
-rwxr-xr-x  1 build build    412 Jan 29 16:05 run.sh
$ go test ./internal/window -run TestMean -count=1
--- FAIL: TestMean (0.00s)
    window_test.go:42: mean() = 2.5, want 3.0
    window_test.go:57: after 10 readings: index out of range [10] with length 10
FAIL	example.org/sensor/internal/window	0.004s
2026-02-11T08:31:07.114Z WARN  retry=3 host=db-2.internal:5432 err="connection refused" elapsed=1.204s
diff --git a/window.go b/window.go
index 3f1c9ab..e07d221 100644
@@ -17,7 +17,7 @@ func (w *window) push(value float64) {
-	if w.next++; w.next > len(w.readings) {
+	if w.next++; w.next == len(w.readings) {
`
)
