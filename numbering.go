package ibid

// Numbering keeps the numbers of sources over the answers of a conversation: [Source.Key] to number. It only grows, so
// a number never comes to mean another source. As JSON it is an object.
//
// The zero value is ready to use through a pointer. It is not safe for concurrent use.
type Numbering map[string]int

// Number returns the number of the source with that key. A key that is new gets the next number, the first one 1.
func (n *Numbering) Number(key string) int { return n.numberAll([]string{key})[key] }

// numberAll is Number for each of keys. It looks only once through what is numbered already.
func (n *Numbering) numberAll(keys []string) Numbering {
	if *n == nil {
		*n = make(Numbering, len(keys))
	}
	last := 0
	for _, number := range *n {
		last = max(last, number)
	}
	for _, key := range keys {
		if _, known := (*n)[key]; !known {
			last++
			(*n)[key] = last
		}
	}
	return *n
}
