package support

// placedValue is a value with its index in its text.
type placedValue struct {
	*Value
	index int
}

// values returns the values of one kind of a statement.
func (s *statement) values(kind ValueKind) []placedValue {
	var values []placedValue
	sentence := s.text.sentences[s.sentence]
	for i := sentence.values[0]; i < sentence.values[1]; i++ {
		if s.text.values[i].Kind == kind {
			values = append(values, placedValue{&s.text.values[i], i})
		}
	}
	return values
}

// numbers reports the numbers that differ, if the sentences speak of the same time.
func (p *statementPair) numbers() {
	as, bs := p.a.values(ValueNumber), p.b.values(ValueNumber)
	if len(as) == 0 || len(bs) == 0 || !p.sameTime() {
		return
	}
	as, bs = p.unmatched(as, bs, p.sameQuantity), p.unmatched(bs, as, p.sameQuantity)
	best, bestA, bestB := 0, placedValue{}, placedValue{}
	for _, a := range as {
		for _, b := range bs {
			if fit := p.fit(a, b); fit > best {
				best, bestA, bestB = fit, a, b
			}
		}
	}
	if best == 0 {
		return
	}
	kind := ConflictNumber
	if sameFigure(bestA.Value, bestB.Value) {
		kind = ConflictUnit
	}
	p.add(kind, bestA.Span, bestB.Span)
}

// unmatched returns the values that have no equal on the other side.
func (p *statementPair) unmatched(values, others []placedValue, same func(a, b placedValue) bool) []placedValue {
	var left []placedValue
	for _, v := range values {
		matched := false
		for _, other := range others {
			matched = matched || same(v, other)
		}
		if !matched {
			left = append(left, v)
		}
	}
	return left
}

func (p *statementPair) sameQuantity(a, b placedValue) bool {
	return comparableNumbers(a.Value, b.Value) && sameNumber(a.Value, b.Value, max(a.slack(), b.slack())) ||
		sameFigure(a.Value, b.Value) && !otherUnit(a.Value, b.Value)
}

// fit says how well two numbers stand for the same thing: 0 not at all.
func (p *statementPair) fit(a, b placedValue) int {
	if sameNumber(a.Value, b.Value, max(a.slack(), b.slack())) {
		return 0
	}
	attributeA, attributeB := p.a.attribute(a, quantityConcept), p.b.attribute(b, quantityConcept)
	if attributeA != "" && attributeB != "" && attributeA != attributeB {
		return 0
	}
	same := attributeA != "" && attributeA == attributeB
	switch {
	case !p.fitUnits(a, b, same):
		return 0
	case same:
		return 2
	}
	return 1
}

// fitUnits reports whether the units of two numbers can stand for the same thing; same: both say what they are of.
func (p *statementPair) fitUnits(a, b placedValue, same bool) bool {
	ka, kb := a.Unit.Kind, b.Unit.Kind
	switch {
	case otherUnit(a.Value, b.Value) && sameFigure(a.Value, b.Value):
		return true
	case ka == UnitOrdinal || kb == UnitOrdinal:
		return false
	case ka == UnitMoney && kb == UnitMoney:
		return a.Unit.Name == b.Unit.Name
	case ka == UnitCount && kb == UnitCount:
		// People may be employees, if both sentences speak of work.
		return a.Unit.Name == b.Unit.Name || same && (a.Unit.Name == "people" || b.Unit.Name == "people")
	case ka == UnitPercent && kb == UnitPercent, ka == UnitTime && kb == UnitTime, counts(ka) && counts(kb):
		// Shares, times and bare numbers are of anything: a word beside both must say of what.
		return same || p.sharedNear(a, b)
	}
	return ka == kb
}

func counts(kind UnitKind) bool { return kind == UnitNone || kind == UnitCount }

// nearWords is how many words from a value say what it is of.
const nearWords = 8

// attribute is the concept nearest to a value, before or behind it: height, birth; empty: none is near. A counted noun
// stands back: it says what there are, not what happens to them.
func (s *statement) attribute(v placedValue, concepts func(string, *Value) string) string {
	place := s.text.places[v.index]
	sentence := s.text.sentences[s.sentence]
	best, nearest := "", nearWords+1
	own := ""
	for i := max(sentence.tokens[0], place-nearWords); i < min(sentence.tokens[1], place+2*nearWords); i++ {
		token := &s.text.tokens[i]
		if token.kind != wordToken || token.upper && !token.opens {
			continue
		}
		concept := concepts(string(stem([]byte(token.low))), v.Value)
		switch distance := max(i-place, place-i); {
		case concept == "":
		case token.start >= v.Span.Start && token.end <= v.Span.End:
			own = concept
		case distance < nearest:
			best, nearest = concept, distance
		}
	}
	if best == "" {
		return own
	}
	return best
}

// quantityConcept is the concept of a stem that may say what a number is of.
func quantityConcept(stem string, v *Value) string {
	switch v.Unit.Kind {
	case UnitLength, UnitArea, UnitVolume, UnitMass, UnitSpeed, UnitTemperature, UnitData, UnitPower, UnitEnergy,
		UnitTime:
		if concept := measureConcept(stem); measures(v.Unit.Kind, concept) {
			return concept
		}
		return ""
	case UnitMoney:
		return moneyConcept(stem)
	default:
	}
	for _, table := range [...]func(string) string{peopleConcept, moneyConcept} {
		if concept := table(stem); concept != "" {
			return concept
		}
	}
	if concept := eventConcept(stem); concept == "=death" {
		return concept
	}
	if concept := measureConcept(stem); concept == "=capacity" || concept == "=output" {
		return concept
	}
	return ""
}

// measures reports whether a unit of a kind may measure a concept.
func measures(kind UnitKind, concept string) bool {
	switch concept {
	case "=height", "=length", "=width", "=depth", "=distance":
		return kind == UnitLength
	case "=weight":
		return kind == UnitMass
	case "=area":
		return kind == UnitArea
	case "=speed":
		return kind == UnitSpeed
	case "=temperature":
		return kind == UnitTemperature
	case "=capacity":
		return kind == UnitVolume || kind == UnitMass
	case "=duration":
		return kind == UnitTime
	case "=storage":
		return kind == UnitData
	case "=output", "=use":
		return true
	}
	return false
}

// dateConcept is the event of a stem, for dates.
func dateConcept(stem string, _ *Value) string { return eventConcept(stem) }

// sharedNear reports whether a word that is no name stands near both values.
func (p *statementPair) sharedNear(a, b placedValue) bool {
	near := p.a.near(a.index)
	for key := range p.b.near(b.index) {
		if near[key] {
			return true
		}
	}
	return false
}

func (s *statement) near(value int) map[uint32]bool {
	keys := map[uint32]bool{}
	place := s.text.places[value]
	sentence := s.text.sentences[s.sentence]
	for _, term := range s.text.terms[sentence.terms[0]:sentence.terms[1]] {
		if distance := max(term.token-place, place-term.token); distance <= nearWords && !term.name {
			keys[term.key] = true
		}
	}
	return keys
}

// sameTime reports whether the sentences may speak of the same time: a date of one agrees with one of the other, or
// neither has any. Where only one has a date, what changes with the years is not compared.
func (p *statementPair) sameTime() bool {
	as, bs := p.a.values(ValueDate), p.b.values(ValueDate)
	switch {
	case len(as) == 0 && len(bs) == 0:
		return true
	case len(as) == 0 || len(bs) == 0:
		return !p.changing()
	}
	for _, a := range as {
		for _, b := range bs {
			if r := relateDates(&a.Date, &b.Date); r >= dateWider || relateDates(&b.Date, &a.Date) >= dateWider {
				return true
			}
		}
	}
	return false
}

// changing reports whether the sentences speak of what changes with the years.
func (p *statementPair) changing() bool {
	for _, concept := range [...]string{"=people", "=staff", "=students", "=members", "=visitors", "=cost", "=revenue", "=share", "=temperature", "=output", "=use", "=age"} {
		if p.shared[hashString(concept)&^1] {
			return true
		}
	}
	return p.shared[topicKey("rate")] || p.shared[topicKey("average")] || p.shared[topicKey("record")]
}

// dates reports the dates that differ, if they are of the same event.
func (p *statementPair) dates() {
	as, bs := p.a.values(ValueDate), p.b.values(ValueDate)
	same := func(a, b placedValue) bool {
		return relateDates(&a.Date, &b.Date) >= dateWider || relateDates(&b.Date, &a.Date) >= dateWider
	}
	restA, restB := p.unmatched(as, bs, same), p.unmatched(bs, as, same)
	// Where numbers differ as well, the dates say when they were so.
	if len(p.a.values(ValueNumber)) > 0 && len(p.b.values(ValueNumber)) > 0 {
		return
	}
	alone := len(as) == 1 && len(bs) == 1
	for _, a := range restA {
		for _, b := range restB {
			if !sameGrain(&a.Date, &b.Date) {
				continue
			}
			eventA, eventB := p.a.attribute(a, dateConcept), p.b.attribute(b, dateConcept)
			if eventA != "" && eventB != "" && eventA != eventB {
				continue
			}
			if eventA != "" && eventA == eventB || alone && p.sharedNear(a, b) {
				p.add(ConflictDate, a.Span, b.Span)
				return
			}
		}
	}
}
