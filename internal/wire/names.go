package wire

import "slices"

// ProviderNames returns the names that an answer can have for its provider, in order, as long as nobody says another
// one: those of [Providers] and others whose answers are recognised.
func ProviderNames() []string {
	names := []string{"generic"} // nobody knows whose it is
	for _, p := range Providers() {
		names = append(names, p.Name)
	}
	for i := range formats {
		names = append(names, formats[i].provider)
	}
	for f := plainChat + 1; f <= azureChat; f++ {
		_, name := f.names()
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
