package ibid

// Numbering keeps the numbers of sources over the answers of a conversation: [Source.Key] to number. It only grows, so a
// number never comes to mean another source. As JSON it is an object.
//
// The zero value is ready to use through a pointer. It is not safe for concurrent use.
type Numbering map[string]int

// Number returns the number of the source with that key. A key that is new gets the next number, the first one 1.
func (n *Numbering) Number(key string) int {
	if number, ok := (*n)[key]; ok {
		return number
	}
	if *n == nil {
		*n = Numbering{}
	}
	next := 0
	for _, number := range *n { // the map may have been edited, so its length says nothing
		next = max(next, number)
	}
	next++
	(*n)[key] = next
	return next
}
