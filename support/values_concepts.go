package support

// conceptOf folds stems that say the same of a value: what is tall has a height. It holds the attributes that texts
// give numbers and dates for, no more; empty: the stem stands for itself.
func conceptOf(stem string) string {
	for _, table := range [...]func(string) string{measureConcept, eventConcept, peopleConcept, moneyConcept} {
		if concept := table(stem); concept != "" {
			return concept
		}
	}
	return ""
}

func measureConcept(stem string) string {
	switch stem {
	case "tall", "height", "high", "stand", "altitud", "elevat", "elevation":
		return "=height"
	case "long", "length", "stretch", "extend", "span", "run":
		return "=length"
	case "wide", "width", "breadth", "broad", "across":
		return "=width"
	case "deep", "depth":
		return "=depth"
	case "weigh", "weight", "heavy", "mass", "heavi":
		return "=weight"
	case "area", "cover", "occupi", "surfac", "siz":
		return "=area"
	case "fast", "speed", "veloc", "velociti", "quick":
		return "=speed"
	case "hot", "warm", "cold", "temperatur", "degre", "thermomet":
		return "=temperature"
	case "distanc", "far", "apart", "away":
		return "=distance"
	case "capac", "capaciti", "hold", "seat", "accommodat", "fit":
		return "=capacity"
	case "last", "durat", "duration", "take", "took", "lasts":
		return "=duration"
	case "generat", "produc", "output", "yield", "deliver", "production":
		return "=output"
	case "consum", "consumption", "us", "usag", "burn", "burnt":
		return "=use"
	case "store", "storag":
		return "=storage"
	}
	return ""
}

func eventConcept(stem string) string {
	switch stem {
	case "born", "birth", "birthdat", "birthday":
		return "=birth"
	case "died", "die", "death", "dead", "pass", "kill":
		return "=death"
	case "found", "founder", "establish", "creat", "set", "start", "begin", "began", "begun", "launch", "form",
		"incorporat", "institut", "creation", "foundation":
		return "=founding"
	case "open", "inaugurat", "unveil", "inauguration":
		return "=opening"
	case "close", "shut", "clos", "closur":
		return "=closing"
	case "build", "built", "construct", "complet", "erect", "construction", "finish", "completion":
		return "=building"
	case "publish", "releas", "issu", "appear", "premier", "debut", "publication", "print":
		return "=release"
	case "marri", "wed", "marriag":
		return "=marriage"
	case "elect", "election", "vot":
		return "=election"
	case "win", "won", "victori", "award", "receiv", "receipt":
		return "=win"
	case "discover", "discoveri", "find", "detect", "identifi", "spot":
		return "=discovery"
	case "sign", "conclud", "signatur":
		return "=signing"
	case "join", "enter", "accession", "admit", "admitt":
		return "=joining"
	case "invent", "patent", "invention":
		return "=invention"
	case "arriv", "land", "reach", "arrival":
		return "=arrival"
	}
	return ""
}

func peopleConcept(stem string) string {
	switch stem {
	case "peopl", "person", "popul", "population", "inhabitant", "resident", "liv", "hom", "citizen", "inhabit",
		"dwell", "resid", "populat":
		return "=people"
	case "employe", "employ", "work", "worker", "staff", "workforc", "job", "payroll", "headcount":
		return "=staff"
	case "student", "pupil", "enrol", "enroll", "attend":
		return "=students"
	case "member", "membership", "belong":
		return "=members"
	case "visit", "visitor", "tourist", "attendanc", "guest":
		return "=visitors"
	case "fataliti", "casualti", "victim", "toll":
		return "=death"
	case "injur", "wound", "hurt", "injuri":
		return "=injury"
	case "old", "age", "ag":
		return "=age"
	case "film", "movi":
		return "=film"
	case "team", "club":
		return "=team"
	}
	return ""
}

func moneyConcept(stem string) string {
	switch stem {
	case "cost", "pric", "budget", "expens", "spend", "spent", "fee", "charg", "paid", "pay", "worth", "valu":
		return "=cost"
	case "revenu", "turnov", "sale", "earn", "earning", "incom":
		return "=revenue"
	case "rate", "share", "proportion", "percentag", "portion", "fraction":
		return "=share"
	case "company", "compani", "firm", "corporat", "busi", "corporation", "manufactur", "maker":
		return "=company"
	}
	return ""
}
