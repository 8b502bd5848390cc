package support

// degreeOf reads a word that has an opposite: the name of its side of the pair, and that of the other side. Words that
// often mean something else (left, light, mean) are not in the list.
func degreeOf(low string) (own, opposite string) {
	for _, table := range [...]func(string) (string, string){changeDegree, orderDegree, sizeDegree, ruleDegree, actDegree, stateDegree, placeDegree} {
		if own, opposite = table(low); own != "" {
			return own, opposite
		}
	}
	return "", ""
}

func changeDegree(low string) (own, opposite string) {
	switch low {
	case "rise", "rises", "rose", "risen", "rising", "increase", "increases", "increased", "increasing", "grow",
		"grows", "grew", "grown", "climb", "climbs", "climbed", "climbing", "jumped", "soared", "surged", "gained",
		"growing", "growth", "doubled", "boosts", "boosted", "raised", "raises":
		return "rise", "fall"
	case "fell", "fallen", "falls", "falling", "decrease", "decreases", "decreased", "decreasing", "decline",
		"declines", "declined", "declining", "drop", "drops", "dropped", "dropping", "shrank", "shrunk", "shrinks",
		"shrinking", "plunged", "plummeted", "slumped", "sank", "halved", "reduce", "reduces", "reduced", "reducing",
		"reduction", "dwindled", "diminished", "lowered", "lowers":
		return "fall", "rise"
	case "improve", "improves", "improved", "improving", "improvement":
		return "improve", "worsen"
	case "worsen", "worsens", "worsened", "worsening", "deteriorate", "deteriorated", "deteriorates", "deteriorating":
		return "worsen", "improve"
	case "strengthen", "strengthens", "strengthened", "strengthening":
		return "strengthen", "weaken"
	case "weaken", "weakens", "weakened", "weakening":
		return "weaken", "strengthen"
	case "expand", "expands", "expanded", "expanding", "widened", "enlarged":
		return "expand", "narrow"
	case "narrowed", "contracted", "contracts", "narrowing":
		return "narrow", "expand"
	case "warming", "warmed", "warmer", "warms":
		return "warm", "cool"
	case "cooling", "cooled", "cooler", "cools":
		return "cool", "warm"
	case "accelerate", "accelerates", "accelerated", "accelerating":
		return "speed up", "slow down"
	case "slowed", "decelerated", "slows", "decelerates":
		return "slow down", "speed up"
	}
	return "", ""
}

func orderDegree(low string) (own, opposite string) {
	switch low {
	case "before", "prior":
		return "before", "after"
	case "after":
		return "after", "before"
	case "earlier":
		return "earlier", "later"
	case "later":
		return "later", "earlier"
	case "first":
		return "first", "last"
	case "last", "final":
		return "last", "first"
	case "oldest", "eldest":
		return "oldest", "youngest"
	case "youngest", "newest":
		return "youngest", "oldest"
	case "older", "elder":
		return "older", "younger"
	case "younger", "newer":
		return "younger", "older"
	case "begin", "begins", "began", "begun", "start", "starts", "started":
		return "begin", "end"
	case "end", "ends", "ended", "finish", "finished", "finishes", "ceased", "stopped":
		return "end", "begin"
	case "opened", "opens", "reopened":
		return "open", "close"
	case "closed", "closes", "shut":
		return "close", "open"
	case "predecessor", "preceded":
		return "precede", "follow"
	case "successor", "followed", "succeeded":
		return "follow", "precede"
	case "temporary", "temporarily":
		return "temporary", "permanent"
	case "permanent", "permanently":
		return "permanent", "temporary"
	}
	return "", ""
}

//nolint:funlen // a table
func sizeDegree(low string) (own, opposite string) {
	switch low {
	case "more":
		return "more", "less"
	case "less", "fewer":
		return "less", "more"
	case "most":
		return "most", "least"
	case "fewest", "least":
		return "least", "most"
	case "higher", "taller", "greater":
		return "higher", "lower"
	case "lower", "smaller":
		return "lower", "higher"
	case "highest", "tallest", "largest", "biggest", "greatest":
		return "highest", "lowest"
	case "lowest", "smallest", "tiniest":
		return "lowest", "highest"
	case "minimum", "minimal":
		return "minimum", "maximum"
	case "maximum", "maximal":
		return "maximum", "minimum"
	case "deepest":
		return "deepest", "shallowest"
	case "shallowest":
		return "shallowest", "deepest"
	case "longest":
		return "longest", "shortest"
	case "shortest":
		return "shortest", "longest"
	case "longer":
		return "longer", "shorter"
	case "shorter":
		return "shorter", "longer"
	case "best":
		return "best", "worst"
	case "worst":
		return "worst", "best"
	case "better":
		return "better", "worse"
	case "worse":
		return "worse", "better"
	case "faster", "quicker":
		return "faster", "slower"
	case "slower":
		return "slower", "faster"
	case "majority":
		return "majority", "minority"
	case "minority":
		return "minority", "majority"
	case "above":
		return "above", "below"
	case "below":
		return "below", "above"
	}
	return "", ""
}

func ruleDegree(low string) (own, opposite string) {
	switch low {
	case "allow", "allows", "allowed", "permit", "permits", "permitted", "legalised", "legalized", "authorised",
		"authorized":
		return "allow", "ban"
	case "ban", "bans", "banned", "forbid", "forbids", "forbidden", "forbade", "prohibit", "prohibits", "prohibited",
		"outlawed", "barred", "disallowed":
		return "ban", "allow"
	case "legal", "lawful":
		return "legal", "illegal"
	case "illegal", "unlawful":
		return "illegal", "legal"
	case "mandatory", "compulsory", "obligatory", "required":
		return "mandatory", "optional"
	case "optional", "voluntary":
		return "optional", "mandatory"
	case "approve", "approves", "approved", "accept", "accepts", "accepted", "ratified", "adopted":
		return "accept", "reject"
	case "reject", "rejects", "rejected", "refused", "vetoed", "denied", "rebuffed":
		return "reject", "accept"
	case "support", "supports", "supported", "backed", "endorsed", "endorses":
		return "support", "oppose"
	case "oppose", "opposes", "opposed":
		return "oppose", "support"
	case "guilty", "convicted":
		return "guilty", "innocent"
	case "innocent", "acquitted", "exonerated":
		return "innocent", "guilty"
	case "valid":
		return "valid", "invalid"
	case "invalid", "void":
		return "invalid", "valid"
	case "true", "correct":
		return "true", "false"
	case "false", "incorrect", "untrue":
		return "false", "true"
	case "public", "publicly":
		return "public", "private"
	case "private", "privately":
		return "private", "public"
	}
	return "", ""
}

//nolint:funlen // a table
func actDegree(low string) (own, opposite string) {
	switch low {
	case "win", "wins", "won", "winning", "victory", "triumphed":
		return "win", "lose"
	case "lose", "loses", "lost", "losing", "defeated":
		return "lose", "win"
	case "buy", "buys", "bought", "acquired", "purchased":
		return "buy", "sell"
	case "sell", "sells", "sold":
		return "sell", "buy"
	case "include", "includes", "included", "including":
		return "include", "exclude"
	case "exclude", "excludes", "excluded", "excluding":
		return "exclude", "include"
	case "agree", "agrees", "agreed":
		return "agree", "disagree"
	case "disagree", "disagrees", "disagreed":
		return "disagree", "agree"
	case "cause", "causes", "caused", "causing":
		return "cause", "prevent"
	case "prevent", "prevents", "prevented", "preventing":
		return "prevent", "cause"
	case "succeed", "succeeds":
		return "succeed", "fail"
	case "fail", "fails", "failed":
		return "fail", "succeed"
	case "arrive", "arrives", "arrived", "entered", "joined":
		return "arrive", "leave"
	case "departed", "departs", "exited", "quit":
		return "leave", "arrive"
	case "imports", "imported":
		return "import", "export"
	case "exports", "exported":
		return "export", "import"
	case "profit":
		return "profit", "loss"
	case "loss":
		return "loss", "profit"
	case "surplus":
		return "surplus", "deficit"
	case "deficit":
		return "deficit", "surplus"
	case "survived", "survives":
		return "survive", "die"
	case "died", "dies", "perished":
		return "die", "survive"
	}
	return "", ""
}

//nolint:funlen // a table
func stateDegree(low string) (own, opposite string) {
	switch low {
	case "safe":
		return "safe", "unsafe"
	case "unsafe", "dangerous", "hazardous":
		return "unsafe", "safe"
	case "effective":
		return "effective", "ineffective"
	case "ineffective":
		return "ineffective", "effective"
	case "successful", "successfully":
		return "successful", "unsuccessful"
	case "unsuccessful", "unsuccessfully":
		return "unsuccessful", "successful"
	case "likely":
		return "likely", "unlikely"
	case "unlikely":
		return "unlikely", "likely"
	case "possible":
		return "possible", "impossible"
	case "impossible":
		return "impossible", "possible"
	case "positive", "positively":
		return "positive", "negative"
	case "negative", "negatively":
		return "negative", "positive"
	case "strong", "stronger":
		return "strong", "weak"
	case "weak", "weaker":
		return "weak", "strong"
	case "alive":
		return "alive", "dead"
	case "dead":
		return "dead", "alive"
	case "common", "frequent", "widespread":
		return "common", "rare"
	case "rare", "uncommon", "infrequent", "scarce":
		return "rare", "common"
	case "easy", "easier":
		return "easy", "difficult"
	case "difficult", "harder":
		return "difficult", "easy"
	case "beneficial", "helpful":
		return "beneficial", "harmful"
	case "harmful", "detrimental":
		return "harmful", "beneficial"
	case "dry", "dries", "drier":
		return "dry", "wet"
	case "wet", "wetter":
		return "wet", "dry"
	case "toxic", "poisonous":
		return "toxic", "harmless"
	case "harmless", "non-toxic", "nontoxic", "edible":
		return "harmless", "toxic"
	case "expensive", "costly":
		return "expensive", "cheap"
	case "cheap", "inexpensive":
		return "cheap", "expensive"
	}
	return "", ""
}

func placeDegree(low string) (own, opposite string) {
	switch low {
	case "north", "northern", "northward":
		return "north", "south"
	case "south", "southern", "southward":
		return "south", "north"
	case "east", "eastern", "eastward":
		return "east", "west"
	case "west", "western", "westward":
		return "west", "east"
	case "inside":
		return "inside", "outside"
	case "outside":
		return "outside", "inside"
	case "urban":
		return "urban", "rural"
	case "rural":
		return "rural", "urban"
	case "internal":
		return "internal", "external"
	case "external":
		return "external", "internal"
	case "domestic":
		return "domestic", "foreign"
	case "foreign":
		return "foreign", "domestic"
	}
	return "", ""
}
