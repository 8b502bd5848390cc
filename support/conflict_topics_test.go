package support

// valueTopic is a thing that texts give a number or a date for, and ways to say so that differ in syntax. {N} is the name, {V}
// the value with its unit.
type valueTopic struct {
	value string // a key of valueKinds
	forms []string
}

// polarTopic is a thing that can be said or its contrary. The forms of each side mean the same.
type polarTopic struct {
	kind string // "negation" or "antonym"
	says []string
	not  []string
}

// valueTopics were written by hand. Those with odd indices were not looked at while the rules were tuned.
func valueTopics() []valueTopic {
	return []valueTopic{
		{"metres", []string{"The {N} Bridge is {V} long.", "At {V} from end to end, the {N} Bridge crosses the whole valley.", "The length of the {N} Bridge is {V}."}},
		{"metres", []string{"The {N} Tower is {V} tall.", "Rising to a height of {V}, the {N} Tower dominates the harbour.", "Engineers measured the {N} Tower at {V} from base to tip."}},
		{"kilometres", []string{"The {N} River is {V} long.", "The {N} River flows for {V} before it reaches the sea.", "Over a length of {V}, the {N} River drains the plateau."}},
		{"metres", []string{"Mount {N} has an elevation of {V}.", "The summit of Mount {N} lies {V} above sea level.", "Climbers on Mount {N} reach the top at {V}."}},
		{"people", []string{"The town of {N} has a population of {V}.", "About its people: {N} is home to {V} inhabitants.", "{V} people live in the town of {N}."}},
		{"kilometres", []string{"The {N} tunnel runs for {V} under the strait.", "Under the strait, the {N} tunnel has a total length of {V}.", "With {V} of track, the {N} tunnel connects the two shores under the strait."}},
		{"year", []string{"The {N} Bridge opened in {V}.", "It was in {V} that the {N} Bridge was opened to traffic.", "The {N} Bridge, inaugurated in {V}, carries four lanes."}},
		{"year", []string{"{N} Industries was founded in {V}.", "Founded in {V}, {N} Industries makes pumps.", "The history of {N} Industries began in {V}, when it was established by two brothers."}},
		{"date", []string{"Clara {N} was born on {V}.", "Clara {N} (born {V}) was a painter.", "The birth of Clara {N} on {V} is recorded in the parish register."}},
		{"date", []string{"Edgar {N} died on {V}.", "The death of Edgar {N} on {V} ended an era.", "Edgar {N} passed away at home on {V}."}},
		{"money", []string{"The {N} stadium cost {V} to build.", "Building the {N} stadium cost the city {V}.", "The construction cost of the {N} stadium came to {V}."}},
		{"money", []string{"{N} Motors reported revenue of {V}.", "Revenue at {N} Motors amounted to {V}.", "{N} Motors had a turnover of {V}, its annual report says."}},
		{"employees", []string{"{N} Steel employs {V} people.", "The workforce of {N} Steel numbers {V}.", "{N} Steel has {V} employees."}},
		{"percent", []string{"The unemployment rate in {N} is {V}.", "Unemployment in {N} stands at {V}.", "In {N}, {V} of the workforce is without a job, the unemployment office says."}},
		{"celsius", []string{"The thermal spring at {N} has a temperature of {V}.", "Water leaves the thermal spring at {N} at {V}.", "The water of the {N} thermal spring is {V} hot."}},
		{"kilograms", []string{"The {N} meteorite weighs {V}.", "The {N} meteorite has a mass of {V}.", "At {V}, the weight of the {N} meteorite surprised the finders."}},
		{"hectares", []string{"{N} National Park covers an area of {V}.", "The area of {N} National Park is {V}.", "{N} National Park extends over {V} of forest."}},
		{"hours", []string{"The flight from {N} to Osterby takes {V}.", "A flight between {N} and Osterby lasts {V}.", "Passengers from {N} to Osterby spend {V} on the flight."}},
		{"kmh", []string{"The {N} Express reaches a top speed of {V}.", "The top speed of the {N} Express is {V}.", "On straight track the {N} Express can travel at a top speed of {V}."}},
		{"megawatts", []string{"The {N} wind farm generates {V}.", "The output of the {N} wind farm is {V}.", "With an output of {V}, the {N} wind farm supplies the island."}},
		{"students", []string{"{N} University has {V} students.", "{V} students are enrolled at {N} University.", "Enrolment at {N} University stands at {V} students."}},
		{"seats", []string{"The {N} theatre has {V} seats.", "There are {V} seats in the {N} theatre.", "The {N} theatre offers its audience {V} seats."}},
		{"year", []string{"The novel The {N} Letters was published in {V}.", "First published in {V}, the novel The {N} Letters sold well.", "The publication of the novel The {N} Letters followed in {V}."}},
		{"date", []string{"The treaty of {N} was signed on {V}.", "On {V}, the delegates signed the treaty of {N}.", "The signing of the treaty of {N} took place on {V}."}},
		{"dead", []string{"The {N} earthquake killed {V} people.", "{V} people died in the {N} earthquake.", "The death toll of the {N} earthquake was {V}."}},
		{"visitors", []string{"The {N} Museum had {V} visitors.", "{V} people visited the {N} Museum.", "Attendance at the {N} Museum was {V} visitors."}},
		{"litres", []string{"The fuel tank of the {N} holds {V}.", "The {N} has a fuel tank with a capacity of {V}.", "A full fuel tank of the {N} contains {V}."}},
		{"gigabytes", []string{"The {N} phone has {V} of storage.", "Storage on the {N} phone is {V}.", "The {N} phone comes with a storage of {V}."}},
		{"percent", []string{"{V} of the voters in {N} supported the reform.", "In {N}, the reform had the support of {V} of voters.", "The reform was supported by {V} of the voters of {N}."}},
		{"islands", []string{"The {N} archipelago consists of {V} islands.", "There are {V} islands in the {N} archipelago.", "Sailors count {V} islands in the {N} archipelago."}},
		{"year", []string{"{N} Castle was built in {V}.", "The construction of {N} Castle was finished in {V}.", "Builders completed {N} Castle in {V}."}},
		{"year", []string{"Ida {N} won the Brandt Prize in {V}.", "In {V}, the Brandt Prize was awarded to Ida {N}.", "Ida {N} received the Brandt Prize in {V}."}},
		{"metres", []string{"Lake {N} is {V} deep.", "The maximum depth of Lake {N} is {V}.", "Divers found the bottom of Lake {N} at a depth of {V}."}},
		{"members", []string{"The {N} Society has {V} members.", "Membership of the {N} Society stands at {V}.", "{V} people are members of the {N} Society."}},
		{"money", []string{"A ticket for the {N} festival costs {V}.", "The price of a ticket for the {N} festival is {V}.", "Visitors of the {N} festival pay {V} for a ticket."}},
		{"rooms", []string{"The {N} Hotel has {V} rooms.", "Guests can choose between {V} rooms at the {N} Hotel.", "The {N} Hotel offers {V} rooms."}},
		{"year", []string{"The {N} comet was discovered in {V}.", "Astronomers discovered the {N} comet in {V}.", "The discovery of the {N} comet dates from {V}."}},
		{"date", []string{"The {N} probe landed on Mars on {V}.", "On {V}, the {N} probe touched down on Mars, a perfect landing.", "The landing of the {N} probe on Mars took place on {V}."}},
		{"milligrams", []string{"One tablet of {N} contains {V} of caffeine.", "The caffeine content of a tablet of {N} is {V}.", "Each tablet of {N} has {V} of caffeine."}},
		{"years", []string{"The {N} bond has a term of {V}.", "Holders of the {N} bond wait {V} for the end of its term.", "The term of the {N} bond is {V}."}},
		{"stations", []string{"The {N} metro has {V} stations.", "There are {V} stations on the {N} metro.", "Trains of the {N} metro serve {V} stations."}},
		{"kilometres", []string{"Osterby is {V} from {N}.", "The distance between Osterby and {N} is {V}.", "From {N} it is {V} to Osterby."}},
		{"percent", []string{"The {N} alloy contains {V} nickel.", "Nickel makes up {V} of the {N} alloy.", "The nickel content of the {N} alloy is {V}."}},
		{"year", []string{"The {N} mine closed in {V}.", "The closure of the {N} mine came in {V}.", "In {V}, the owners shut the {N} mine."}},
		{"tonnes", []string{"The {N} quarry produces {V} of limestone a year.", "Each year, {V} of limestone leave the {N} quarry.", "The annual production of limestone at the {N} quarry is {V}."}},
		{"patients", []string{"The {N} trial enrolled {V} patients.", "{V} patients took part in the {N} trial.", "The {N} trial had {V} patients."}},
		{"year", []string{"Oskar {N} joined the senate in {V}.", "Oskar {N} became a member of the senate in {V}, having joined late.", "It was {V} when Oskar {N} entered the senate."}},
		{"metres", []string{"The {N} canal is {V} wide.", "The width of the {N} canal is {V}.", "At the surface the {N} canal has a width of {V}."}},
	}
}

// polarTopics were written by hand, too.
func polarTopics() []polarTopic {
	return []polarTopic{
		{"negation", []string{"The {N} vaccine protects against measles.", "Children who get the {N} vaccine are protected against measles."}, []string{"The {N} vaccine does not protect against measles.", "Against measles, the {N} vaccine offers no protection."}},
		{"negation", []string{"The {N} bridge was damaged by the storm.", "The storm damaged the {N} bridge."}, []string{"The {N} bridge was not damaged by the storm.", "The storm never damaged the {N} bridge."}},
		{"negation", []string{"Helena {N} signed the open letter.", "The open letter was signed by Helena {N}."}, []string{"Helena {N} did not sign the open letter.", "The open letter was never signed by Helena {N}."}},
		{"negation", []string{"The {N} model runs on older phones.", "Older phones can run the {N} model."}, []string{"The {N} model does not run on older phones.", "Older phones cannot run the {N} model."}},
		{"negation", []string{"{N} Foods uses palm oil in its biscuits.", "The biscuits of {N} Foods contain palm oil."}, []string{"{N} Foods does not use palm oil in its biscuits.", "The biscuits of {N} Foods contain no palm oil."}},
		{"negation", []string{"The court found that {N} Bank broke the law.", "{N} Bank broke the law, the court found."}, []string{"The court found that {N} Bank did not break the law.", "{N} Bank did not break the law, the court found."}},
		{"negation", []string{"Dogs are welcome in the {N} gardens.", "The {N} gardens welcome dogs."}, []string{"Dogs are not welcome in the {N} gardens.", "The {N} gardens do not welcome dogs."}},
		{"negation", []string{"The {N} battery contains cobalt.", "There is cobalt in the {N} battery."}, []string{"The {N} battery does not contain cobalt.", "The {N} battery is made without cobalt."}},
		{"negation", []string{"Mayor {N} visited the flooded district.", "The flooded district was visited by Mayor {N}."}, []string{"Mayor {N} never visited the flooded district.", "The flooded district was not visited by Mayor {N}."}},
		{"antonym", []string{"Exports of {N} rose sharply last spring.", "Last spring saw a sharp increase in exports of {N}."}, []string{"Exports of {N} fell sharply last spring.", "Last spring saw a sharp decline in exports of {N}."}},
		{"antonym", []string{"Parliament approved the {N} bill.", "The {N} bill was approved by parliament."}, []string{"Parliament rejected the {N} bill.", "The {N} bill was rejected by parliament."}},
		{"antonym", []string{"Smoking is allowed in the {N} terminal.", "The {N} terminal permits smoking."}, []string{"Smoking is banned in the {N} terminal.", "The {N} terminal prohibits smoking."}},
		{"antonym", []string{"The {N} drug is effective against malaria.", "Against malaria, the {N} drug is effective."}, []string{"The {N} drug is ineffective against malaria.", "Against malaria, the {N} drug is ineffective."}},
		{"antonym", []string{"Air quality in {N} improved after the reform.", "After the reform, the air quality in {N} improved."}, []string{"Air quality in {N} worsened after the reform.", "After the reform, the air quality in {N} deteriorated."}},
		{"antonym", []string{"{N} United won the cup final.", "The cup final was won by {N} United."}, []string{"{N} United lost the cup final.", "The cup final was lost by {N} United."}},
		{"antonym", []string{"The {N} mushroom is edible.", "The {N} mushroom, found in beech woods, is harmless."}, []string{"The {N} mushroom is poisonous.", "The {N} mushroom, found in beech woods, is toxic."}},
		{"antonym", []string{"The jury found Arthur {N} guilty.", "Arthur {N} was found guilty by the jury."}, []string{"The jury found Arthur {N} innocent.", "Arthur {N} was acquitted by the jury."}},
		{"antonym", []string{"Helmets are mandatory on the {N} trail.", "On the {N} trail, helmets are compulsory."}, []string{"Helmets are optional on the {N} trail.", "On the {N} trail, helmets are voluntary."}},
		{"antonym", []string{"The {N} glacier is growing.", "The {N} glacier has grown in recent years."}, []string{"The {N} glacier is shrinking.", "The {N} glacier has shrunk in recent years."}},
		{"antonym", []string{"Ranchers in {N} support the wolf law.", "The wolf law is supported by ranchers in {N}."}, []string{"Ranchers in {N} oppose the wolf law.", "The wolf law is opposed by ranchers in {N}."}},
	}
}

// topicNames are made up.
func topicNames() []string {
	return []string{"Verrin", "Aldous", "Karsey", "Thornvale", "Miravel", "Osgood", "Pellham", "Quintara", "Rosheim", "Selwick", "Tarnow", "Ulvestad", "Varga", "Wendle", "Yarrow", "Zellin"}
}

// distractors stand around the sentences that matter.
func distractors() []string {
	return []string{
		"The café next door closes at six.", "Several guides mention the old mill by the road.", "A local newspaper printed a long report on 12 March 1998.",
		"Photographs from the period are kept in the city archive.", "Some 40 volunteers look after the paths.", "The weather is mild for most of the year.",
		"Critics praised the clear design.", "Entry was free until 2003.", "The nearest railway station is 8 km away.", "Its name goes back to a family of merchants.",
		"A second edition appeared with 320 pages.", "Prices in the region rose by 4 percent.", "The committee did not publish its minutes.", "Nobody was injured.",
		"Work began early in the morning.", "The region is known for its cheese.", "An annual fair takes place in September.", "Two bus lines stop nearby.",
		"Experts from three countries gave advice.", "The building next to it burned down in 1911.",
	}
}
