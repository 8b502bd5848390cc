package support

// unitScale is what a unit's name means: so many of the base unit of its kind, and for temperatures where its zero
// lies.
type unitScale struct {
	kind   UnitKind
	factor float64
	zero   float64
}

// The lengths of a mean Gregorian year and month, in seconds.
const (
	yearSeconds  = 365.2425 * 86400
	monthSeconds = yearSeconds / 12
)

// unitOf reads a unit's name, folded. Units that are read only right behind a figure (5m, 3g) are in shortUnit.
func unitOf(low string) (unitScale, bool) {
	for _, table := range [...]func(string) (UnitKind, float64){lengthUnit, massUnit, timeUnit, areaUnit, volumeUnit, speedUnit, energyUnit, powerUnit, dataUnit} {
		if kind, factor := table(low); factor > 0 {
			return unitScale{kind: kind, factor: factor}, true
		}
	}
	switch low {
	case "%", "percent", "percentage", "pct":
		return unitScale{kind: UnitPercent, factor: .01}, true
	case "pp":
		return unitScale{kind: UnitPoints, factor: .01}, true
	}
	return unitScale{}, false
}

// shortUnit reads one-letter units by their very letters.
func shortUnit(text string) (unitScale, bool) {
	switch text {
	case "m":
		return unitScale{kind: UnitLength, factor: 1}, true
	case "g":
		return unitScale{kind: UnitMass, factor: 1e-3}, true
	case "t":
		return unitScale{kind: UnitMass, factor: 1e3}, true
	case "s":
		return unitScale{kind: UnitTime, factor: 1}, true
	case "h":
		return unitScale{kind: UnitTime, factor: 3600}, true
	case "l", "L":
		return unitScale{kind: UnitVolume, factor: 1e-3}, true
	case "W":
		return unitScale{kind: UnitPower, factor: 1}, true
	case "J":
		return unitScale{kind: UnitEnergy, factor: 1}, true
	}
	return unitScale{}, false
}

func lengthUnit(low string) (UnitKind, float64) {
	switch low {
	case "nm", "nanometre", "nanometres", "nanometer", "nanometers":
		return UnitLength, 1e-9
	case "µm", "μm", "micrometre", "micrometres", "micrometer", "micrometers", "micron", "microns":
		return UnitLength, 1e-6
	case "mm", "millimetre", "millimetres", "millimeter", "millimeters":
		return UnitLength, 1e-3
	case "cm", "centimetre", "centimetres", "centimeter", "centimeters":
		return UnitLength, 1e-2
	case "metre", "metres", "meter", "meters", "metern", "metros", "metri":
		return UnitLength, 1
	case "km", "kilometre", "kilometres", "kilometer", "kilometers", "kms", "kilometern", "kilometros", "quilometros",
		"chilometri": //nolint:misspell // Spanish
		return UnitLength, 1e3
	case "inch", "inches":
		return UnitLength, .0254
	case "ft", "foot", "feet":
		return UnitLength, .3048
	case "yd", "yard", "yards":
		return UnitLength, .9144
	case "mi", "mile", "miles":
		return UnitLength, 1609.344
	case "light-year", "light-years", "lightyear", "lightyears":
		return UnitLength, 9.4607e15
	case "fathom", "fathoms":
		return UnitLength, 1.8288
	}
	return "", 0
}

func massUnit(low string) (UnitKind, float64) {
	switch low {
	case "µg", "μg", "mcg", "microgram", "micrograms":
		return UnitMass, 1e-9
	case "mg", "milligram", "milligrams":
		return UnitMass, 1e-6
	case "gram", "grams", "gramme", "grammes":
		return UnitMass, 1e-3
	case "kg", "kilogram", "kilograms", "kilo", "kilos", "kilogramme", "kilogrammes":
		return UnitMass, 1
	case "tonne", "tonnes", "tonnen", "toneladas", "tonnellate", "metric ton":
		return UnitMass, 1e3
	case "megatonne", "megatonnes":
		return UnitMass, 1e9
	case "gigatonne", "gigatonnes", "gt", "gigaton", "gigatons":
		return UnitMass, 1e12
	case "ton", "tons":
		return UnitMass, 907.18474
	case "lb", "lbs", "pound", "pounds":
		return UnitMass, .45359237
	case "oz", "ounce", "ounces":
		return UnitMass, .028349523
	}
	return "", 0
}

func timeUnit(low string) (UnitKind, float64) {
	switch low {
	case "ms", "millisecond", "milliseconds":
		return UnitTime, 1e-3
	case "sec", "secs", "second", "seconds":
		return UnitTime, 1
	case "min", "mins", "minute", "minutes":
		return UnitTime, 60
	case "hr", "hrs", "hour", "hours":
		return UnitTime, 3600
	case "day", "days":
		return UnitTime, 86400
	case "week", "weeks":
		return UnitTime, 7 * 86400
	case "month", "months":
		return UnitTime, monthSeconds
	case "year", "years", "yr", "yrs", "years-old", "year-old":
		return UnitTime, yearSeconds
	case "decade", "decades":
		return UnitTime, 10 * yearSeconds
	case "century", "centuries":
		return UnitTime, 100 * yearSeconds
	case "fortnight":
		return UnitTime, 14 * 86400
	}
	return "", 0
}

func areaUnit(low string) (UnitKind, float64) {
	switch low {
	case "m²", "m2", "sqm":
		return UnitArea, 1
	case "km²", "km2":
		return UnitArea, 1e6
	case "cm²", "cm2":
		return UnitArea, 1e-4
	case "ha", "hectare", "hectares":
		return UnitArea, 1e4
	case "acre", "acres":
		return UnitArea, 4046.8564224
	case "ft²", "ft2", "sqft":
		return UnitArea, .09290304
	case "mi²", "mi2":
		return UnitArea, 2589988.11
	}
	return "", 0
}

func volumeUnit(low string) (UnitKind, float64) {
	switch low {
	case "ml", "millilitre", "millilitres", "milliliter", "milliliters", "cc":
		return UnitVolume, 1e-6
	case "cl", "centilitre", "centilitres":
		return UnitVolume, 1e-5
	case "litre", "litres", "liter", "liters":
		return UnitVolume, 1e-3
	case "m³", "m3":
		return UnitVolume, 1
	case "km³", "km3":
		return UnitVolume, 1e9
	case "gal", "gallon", "gallons":
		return UnitVolume, .003785411784
	case "pint", "pints":
		return UnitVolume, .000473176473
	case "barrel", "barrels", "bbl":
		return UnitVolume, .158987294928
	}
	return "", 0
}

func speedUnit(low string) (UnitKind, float64) {
	switch low {
	case "mph":
		return UnitSpeed, .44704
	case "kph", "kmh", "km/h", "km/hr":
		return UnitSpeed, 1 / 3.6
	case "m/s":
		return UnitSpeed, 1
	case "km/s":
		return UnitSpeed, 1e3
	case "knot", "knots":
		return UnitSpeed, .514444
	}
	return "", 0
}

func energyUnit(low string) (UnitKind, float64) {
	switch low {
	case "joule", "joules":
		return UnitEnergy, 1
	case "kj", "kilojoule", "kilojoules":
		return UnitEnergy, 1e3
	case "mj", "megajoule", "megajoules":
		return UnitEnergy, 1e6
	case "wh":
		return UnitEnergy, 3600
	case "kwh", "kilowatt-hour", "kilowatt-hours":
		return UnitEnergy, 3.6e6
	case "mwh", "megawatt-hour", "megawatt-hours":
		return UnitEnergy, 3.6e9
	case "gwh", "gigawatt-hour", "gigawatt-hours":
		return UnitEnergy, 3.6e12
	case "twh", "terawatt-hour", "terawatt-hours":
		return UnitEnergy, 3.6e15
	case "kcal", "kilocalorie", "kilocalories", "calorie", "calories":
		return UnitEnergy, 4184
	}
	return "", 0
}

func powerUnit(low string) (UnitKind, float64) {
	switch low {
	case "watt", "watts":
		return UnitPower, 1
	case "kw", "kilowatt", "kilowatts":
		return UnitPower, 1e3
	case "mw", "megawatt", "megawatts":
		return UnitPower, 1e6
	case "gw", "gigawatt", "gigawatts":
		return UnitPower, 1e9
	case "hp", "horsepower", "bhp":
		return UnitPower, 745.7
	}
	return "", 0
}

func dataUnit(low string) (UnitKind, float64) {
	switch low {
	case "byte", "bytes":
		return UnitData, 1
	case "kb", "kilobyte", "kilobytes":
		return UnitData, 1e3
	case "kib", "kibibyte", "kibibytes":
		return UnitData, 1 << 10
	case "mb", "megabyte", "megabytes":
		return UnitData, 1e6
	case "mib", "mebibyte", "mebibytes":
		return UnitData, 1 << 20
	case "gb", "gigabyte", "gigabytes":
		return UnitData, 1e9
	case "gib", "gibibyte", "gibibytes":
		return UnitData, 1 << 30
	case "tb", "terabyte", "terabytes":
		return UnitData, 1e12
	case "pb", "petabyte", "petabytes":
		return UnitData, 1e15
	}
	return "", 0
}
