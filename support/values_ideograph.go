package support

import (
	"strings"
	"unicode/utf8"
)

// ideograph reports whether a rune is of Han or Kana, which write no spaces: it is a word of its own.
func ideograph(r rune) bool {
	return r >= 0x3005 &&
		(r <= 0x3007 || r >= 0x3041 && r <= 0x30ff || r >= 0x3400 && r <= 0x4dbf || r >= 0x4e00 && r <= 0x9fff ||
			r >= 0xf900 && r <= 0xfaff || r >= 0xff66 && r <= 0xff9f || r >= 0x20000 && r <= 0x3ffff)
}

// unspaced reports whether digits behind a rune are a figure and no part of a word, as they are where spaces are few.
func unspaced(r rune) bool {
	return ideograph(r) || r >= 0x0e00 && r <= 0x0eff || r >= 0xac00 && r <= 0xd7af
}

// unspacedBefore reports whether such a rune stands right before token i.
func (r *valueReader) unspacedBefore(i int) bool {
	if !r.glued(i) {
		return false
	}
	before, _ := utf8.DecodeLastRuneInString(r.text[:r.tokens[i].start])
	return unspaced(before)
}

// ideographicDate reads 1932年3月19日, 1932年, 3月19日 and 1932年3月.
func (r *valueReader) ideographicDate(i int) (Date, int) {
	var d Date
	next := i
	if year := r.wholeNumber(i, 4, 4); year > 0 && r.low(i+1) == "年" {
		if low := r.low(i + 2); low == "間" || low == "间" || low == "前" {
			return d, i // 2000年前: so long ago
		}
		d, next = yearDate(year, 0, 0), i+2
	}
	if month := r.wholeNumber(next, 1, 2); month >= 1 && month <= 12 && r.low(next+1) == "月" {
		d.Month = month
		next += 2
		if day := r.wholeNumber(
			next, 1, 2,
		); validDay(month, day) &&
			(r.low(next+1) == "日" || r.low(next+1) == "号" || r.low(next+1) == "號") {
			d.Day = day
			next += 2
		}
	}
	return d, next
}

// ideographicScale reads a sign that multiplies the figure before it; 0: it is none.
func ideographicScale(low string) float64 {
	switch low {
	case "百":
		return 1e2
	case "千":
		return 1e3
	case "万", "萬":
		return 1e4
	case "亿", "億":
		return 1e8
	case "兆":
		return 1e12
	}
	return 0
}

// ideographicScales multiplies a figure by the signs behind it, and adds the lower part: 1億2000万.
func (r *valueReader) ideographicScales(f figure) figure {
	for range maxScales {
		scale := ideographicScale(r.low(f.next))
		if scale == 0 {
			return f
		}
		for next := ideographicScale(r.low(f.next + 1)); next > 0; next = ideographicScale(r.low(f.next + 1)) {
			scale *= next // 5千万
			f.next++
		}
		f.value, f.exact = f.value*scale, f.exact*scale
		f.round = f.exact
		f.next++
		low, ok := readDigits(r.low(f.next), r.comma)
		if below := ideographicScale(
			r.low(f.next + 1),
		); ok && r.kind(f.next) == numberToken && r.glued(f.next) &&
			max(below, 1)*low.value < scale {
			below = max(below, 1)
			f.value += low.value * below
			f.exact, f.round = low.exact*below, low.round*below
			f.next++
			if below > 1 {
				f.next++
			}
		}
	}
	return f
}

// ideographicUnit reads a unit or counter of Chinese or Japanese right behind a figure, and returns the token behind
// it.
func (r *valueReader) ideographicUnit(v *Value, at int) (int, bool) {
	if r.kind(at) != wordToken || !r.glued(at) {
		return at, false
	}
	text := r.text[r.tokens[at].start:]
	if first, _ := utf8.DecodeRuneInString(text); !ideograph(first) {
		return at, false
	}
	power, square := 1, ""
	for i, prefix := range [...]string{"平方", "立方"} {
		if rest, ok := strings.CutPrefix(text, prefix); ok {
			power, square, text = i+2, prefix, rest
		}
	}
	name, kind, factor := ideographicUnitOf(text)
	if name == "" || power > 1 && kind != UnitLength {
		// What is counted is said by its first sign.
		v.Unit = Unit{Kind: UnitCount, Name: r.low(at)}
		return at + 1, true
	}
	switch {
	case kind == UnitMoney || kind == UnitCount:
		v.Unit = Unit{Kind: kind, Name: ideographicName(name)}
	case power == 2:
		v.convert(unitScale{kind: UnitArea, factor: factor * factor}, square+name)
	case power == 3:
		v.convert(unitScale{kind: UnitVolume, factor: factor * factor * factor}, square+name)
	default:
		v.convert(unitScale{kind: kind, factor: factor}, name)
	}
	return at + utf8.RuneCountInString(square+name), true
}

// ideographicName is the name of a currency or of what is counted.
func ideographicName(unit string) string {
	switch unit {
	case "美元", "ドル":
		return "USD"
	case "欧元", "歐元", "ユーロ":
		return "EUR"
	case "円", "日元":
		return "JPY"
	case "元", "人民币":
		return "CNY"
	}
	return "people"
}

func ideographicUnitOf(text string) (name string, kind UnitKind, factor float64) {
	for _, unit := range [...]struct {
		name   string
		kind   UnitKind
		factor float64
	}{
		{"センチメートル", UnitLength, 1e-2},
		{"ミリメートル", UnitLength, 1e-3},
		{"キロメートル", UnitLength, 1e3},
		{"メートル", UnitLength, 1},
		{"公里", UnitLength, 1e3},
		{"千米", UnitLength, 1e3},
		{"厘米", UnitLength, 1e-2},
		{"公分", UnitLength, 1e-2},
		{"毫米", UnitLength, 1e-3},
		{"公尺", UnitLength, 1},
		{"米", UnitLength, 1},
		{"キログラム", UnitMass, 1},
		{"グラム", UnitMass, 1e-3},
		{"トン", UnitMass, 1e3},
		{"公斤", UnitMass, 1},
		{"千克", UnitMass, 1},
		{"克", UnitMass, 1e-3},
		{"吨", UnitMass, 1e3},
		{"噸", UnitMass, 1e3},
		{"公顷", UnitArea, 1e4},
		{"ヘクタール", UnitArea, 1e4},
		{"リットル", UnitVolume, 1e-3},
		{"升", UnitVolume, 1e-3},
		{"小时", UnitTime, 3600},
		{"小時", UnitTime, 3600},
		{"時間", UnitTime, 3600},
		{"分钟", UnitTime, 60},
		{"分鐘", UnitTime, 60},
		{"分間", UnitTime, 60},
		{"秒", UnitTime, 1},
		{"日間", UnitTime, 86400},
		{"天", UnitTime, 86400},
		{"年", UnitTime, yearSeconds},
		{"パーセント", UnitPercent, .01},
		{"美元", UnitMoney, 1},
		{"ドル", UnitMoney, 1},
		{"欧元", UnitMoney, 1},
		{"歐元", UnitMoney, 1},
		{"ユーロ", UnitMoney, 1},
		{"日元", UnitMoney, 1},
		{"円", UnitMoney, 1},
		{"人民币", UnitMoney, 1},
		{"元", UnitMoney, 1},
		{"人", UnitCount, 1},
		{"名", UnitCount, 1},
	} {
		if strings.HasPrefix(text, unit.name) {
			return unit.name, unit.kind, unit.factor
		}
	}
	return "", "", 1
}
